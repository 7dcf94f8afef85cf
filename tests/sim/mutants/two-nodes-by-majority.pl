# Where quorum is no majority, the members of the view are enough.
# file: stable.c
# seeds: --nodes 2
s{return i != c->self && n->standing != BELAY_NODE_CLOSED &&}{return i != c->self && n->in_view && n->standing != BELAY_NODE_CLOSED &&};
