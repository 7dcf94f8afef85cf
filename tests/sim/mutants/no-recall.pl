# A node keeps what it was delegated for ever.
# file: recall.c
s{(void recall_begin\(.*?\{)}{$1 (void)c; (void)i; return;}s;
