# A slot is used again before its client has said that it saw the end of the former loan.
# file: tests/sim/ipc.c
s{reason, r\);\n\tloan->number = 0;}{reason, r);\n\tloan->number = 0;\n\tloan->state = LENT_FREE;};
