# A node grants where it has lent, without calling back.
# file: loan.c
s{(uint32_t loan_conflict\(.*?\{)}{$1 (void)c; (void)q; return 0;}s;
