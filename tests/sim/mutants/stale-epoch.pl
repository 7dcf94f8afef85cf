# The client goes on with whatever loan stands in the slot; belayd uses a slot again early.
# file: slot/commit_inline.h
# file: tests/sim/ipc.c
s{reason, r\);\n\tloan->number = 0;}{reason, r);\n\tloan->number = 0;\n\tloan->state = LENT_FREE;};
s{uint64_t expected = loan->word;}{uint64_t expected = (loan->word & ~(SLOT_EPOCH_MASK << SLOT_EPOCH_SHIFT)) | (loan->head->word & (SLOT_EPOCH_MASK << SLOT_EPOCH_SHIFT));};
