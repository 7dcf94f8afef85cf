# No circle is ever found.
# file: deadlock.c
s{(assert\(q->queue != 0\);)}{$1 return false;};
