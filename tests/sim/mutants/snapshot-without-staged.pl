# The snapshot lacks what a relinquish has listed so far.
# file: snapshot.c
s{!\(l->replicated \|\| l->staged\)}{!l->replicated};
