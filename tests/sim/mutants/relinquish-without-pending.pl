# A grant that is not believed yet is left out of what is relinquished.
# file: resource.c
s{(op\.range = range_of\(l->start, l->end\);\n\top\.owner = owner_at\(c, l->owner\)->id;\n\top\.mode.*?\n)(\s*core_send\(c, &op, true, 0, 0, 0\);)}{$1 bool pending = false; for (uint32_t k = owner_at(c, l->owner)->requests; k != 0; k = request_at(c, k)->owner_next) pending |= request_at(c, k)->state == REQUEST_DONE && request_at(c, k)->resource == l->resource && !request_at(c, k)->test && request_at(c, k)->result == 0; if (!pending) $2}s;
