# An idle owner lets go while a request of its own is on its way.
# file: resource.c
s{r->pins != 0\)}{false)};
s{if \(r->local != 0 && local_at\(c, r->local\)->inflight != 0\)}{if (false)};
