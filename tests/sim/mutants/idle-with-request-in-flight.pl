# An idle owner lets go while a request of its own is on its way.
# file: resource.c
s{r->pins != 0\)}{false)};
s{l->inflight != 0 \|\| l->loans != 0}{l->loans != 0};
