# A claim is accepted while others hold locks there.
# file: deliver.c
s{foreign\(c, res->by_owner, c->from\)}{(foreign(c, res->by_owner, c->from) \&\& false)};
