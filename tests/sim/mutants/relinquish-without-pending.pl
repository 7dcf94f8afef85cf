# A grant that is not believed yet is left out of what is relinquished.
# file: recall.c
s{(\tif \(owner_at\(c, l->owner\)->node == c->self && !l->replicated)\)}{\tbool pending = false;\n\tfor (uint32_t k = owner_at(c, l->owner)->requests; k != 0; k = request_at(c, k)->owner_next)\n\t\tpending |= request_at(c, k)->state == REQUEST_DONE && request_at(c, k)->resource == l->resource && !request_at(c, k)->test && request_at(c, k)->result == 0;\n$1 && !pending)};
