# A claim is accepted while others wait.
# file: deliver.c
s{res->epoch != op->epoch \|\| res->waiting != 0 \|\|}{res->epoch != op->epoch ||};
