# The owner's own request is decided locally although it is recalled.
# file: deliver.c
s{res->state != BELAY_STATE_OWNED \|\| res->owner != c->from}{res->owner != c->from};
