# A slot is used again before its client has said that it saw the end of the former loan.
# file: tests/sim/ipc.c
s{feed_back\(sim, node, loan, &report\);\n\tloan->number = 0;}{feed_back(sim, node, loan, &report);\n\tloan->number = 0;\n\tloan->state = LENT_FREE;};
