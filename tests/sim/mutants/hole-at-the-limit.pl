# A hint counts although the hole that it tells of may not have been cut.
# file: hint.c
s{\t\tif \(l->start < h->range\.start && l->end > h->range\.end\)\n\t\t\tcontinue;\n}{};
