# A release that comes back after the claim is applied to the private table.
# file: deliver.c
s{table_clear\(c, r, o, op->range, SIGHT_REPLICATED\)}{table_clear(c, r, o, op->range, SIGHT_ALL)};
