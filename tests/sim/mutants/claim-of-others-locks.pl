# A claim is accepted while others hold locks there.
# file: claim.c
s{(static bool exclude_lock\(.*?\{)}{$1 (void)context; (void)i; return false;}s;
