# A client goes on while its node has no quorum.
# file: slot/recall.c
s{\(void\)atomic_fetch_or_explicit\(&head->word, SLOT_FROZEN, memory_order_acq_rel\);}{(void)head;};
