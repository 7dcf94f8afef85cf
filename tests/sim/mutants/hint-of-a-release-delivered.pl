# A hint is taken for a lock that its owner has got since.
# file: hint.c
s{ &&\n\t       n->seq < h->seq;}{;};
