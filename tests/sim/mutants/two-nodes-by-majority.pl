# Where quorum is no majority, the members of the view are enough.
# file: stable.c
# seeds: --nodes 2
s{n->standing == BELAY_NODE_CLOSED \|\|}{!n->in_view || n->standing == BELAY_NODE_CLOSED ||};
