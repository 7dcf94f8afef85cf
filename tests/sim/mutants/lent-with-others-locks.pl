# A client is lent a range in which another one holds a lock.
# file: loan.c
s{(static bool exclude_lock\(.*?\{)}{$1 (void)context; (void)i; return false;}s;
