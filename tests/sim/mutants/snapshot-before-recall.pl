# belayd reads first, and ends the loan then.
# file: tests/sim/ipc.c
s{word = slot_recall\(loan->head\);\n\tloan_meddle\(sim, loan\);}{word = SLOT_RECALL | loan->head->word;\n\tloan_meddle(sim, loan);\n\t(void)slot_recall(loan->head);};
