# A recall ends when the request that caused it is withdrawn.
# file: deliver.c
s{(range = range_of\(q->start, q->end\);\n\tresource_at\(c, r\)->pins\+\+;\n\tqueue_drop\(c, i\);)}{$1 if (resource_at(c, r)->waiting == 0) for (uint32_t d = resource_at(c, r)->delegations; d != 0; d = delegation_at(c, d)->next) delegation_recalled(c, d, false);};
