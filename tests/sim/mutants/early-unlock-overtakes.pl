# A part of what was taken early is given back before it is granted.
# file: hint.c
s{(bool hint_defer\(.*?\{)}{$1 (void)c; (void)r; (void)owner; (void)range; return false;}s;
