# Conflicts with shared locks are overlooked.
# file: table.c
s{(uint32_t table_conflict\(.*?\{)}{$1 mode = BELAY_MODE_SH;}s;
