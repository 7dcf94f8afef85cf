# A client's end does not release what it held.
# file: client.c
s{(static bool drop_locks\(.*?\{)}{$1 (void)c; (void)o; (void)ordered; return false;}s;
