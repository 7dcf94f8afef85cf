# Who has left in order is done with, though it has volumes, and cannot be fenced.
# file: member.c
s{\(n->standing == BELAY_NODE_CLOSED && n->clients == 0\)}{(n->standing == BELAY_NODE_CLOSED)};
