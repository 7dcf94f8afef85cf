# A node lets readers in beside its own exclusive locks.
# file: recall.c
s{return !table_each\(c, r, all_of\(d\), exclusive, c\);}{(void)exclusive; return true;};
