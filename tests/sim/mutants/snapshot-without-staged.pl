# The snapshot lacks what a relinquish has listed so far.
# file: snapshot.c
s{\(l->staged \|\| (resource_at\(c, l->resource\)->state == BELAY_STATE_ARB)\)}{($1)};
