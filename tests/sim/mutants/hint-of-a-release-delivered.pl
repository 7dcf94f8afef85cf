# A hint is taken for a lock that its owner has got since.
# file: hint.c
s{ && c->node\[index_node\(c, h->node\)\]\.seq < h->seq;}{;};
