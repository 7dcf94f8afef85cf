# Circles through the order of the queue are not found.
# file: deadlock.c
s{return on_waiters\(h, r, r->waiters\);}{(void)on_waiters; return false;};
