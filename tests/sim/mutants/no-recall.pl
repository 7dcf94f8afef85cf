# The owner keeps what it owns for ever.
# file: resource.c
s{(void resource_recall\(.*?\{)}{$1 (void)c; (void)i; return;}s;
