# Messages of a life that is over still count.
# file: stable.c
s{c->from_new = n->standing != BELAY_NODE_MEMBER \|\| n->incarnation != f->incarnation;}{c->from_new = n->standing == BELAY_NODE_UNSEEN;};
