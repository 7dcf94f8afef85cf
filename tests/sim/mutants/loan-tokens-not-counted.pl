# belayd forgets how far a client has counted.
# file: slot/recall.c
s{\.token = atomic_load_explicit\(&head->token, memory_order_relaxed\),}{.token = 0,};
s{report->token < terms->token \|\| }{};
