# belayd reads what a loan holds, but does not end it.
# file: slot/recall.c
s{return SLOT_RECALL \| atomic_fetch_or_explicit\(&head->word, SLOT_RECALL, memory_order_acq_rel\);}{return SLOT_RECALL | atomic_load_explicit(&head->word, memory_order_acquire);};
