# A part of what was taken early is given back before it is granted.
# file: request.c
s{\(early != NULL && !within\(range_of\(early->start, early->end\),\n[^\n]*end\)\)}{false};
