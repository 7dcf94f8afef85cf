# FENCED ends whatever life the node has.
# file: member.c
s{\(n->standing != BELAY_NODE_LEFT &&.*?n->incarnation != op->incarnation}{n->standing == BELAY_NODE_CLOSED && n->clients == 0}s;
