# A client that has taken locks early dies, and nobody hears of the tokens it was told.
# file: request.c
s{(static void give_back_early\(.*?\{)}{$1 (void)c; (void)cl; return;}s;
