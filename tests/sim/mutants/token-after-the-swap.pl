# A client stores its token after the lock is taken, and may be stopped between.
# file: slot/commit_inline.h
s{\tSLOT_STEP\(loan\);\n\tatomic_store_explicit\(&loan->head->token, token, memory_order_relaxed\);\n}{};
s{(\tloan->token = token;\n)}{\tSLOT_STEP(loan);\n\tatomic_store_explicit(&loan->head->token, token, memory_order_relaxed);\n$1};
