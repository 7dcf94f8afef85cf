# A hint of a life that is over counts.
# file: hint.c
s{ &&\n\t       c->node\[i\]\.incarnation == h->incarnation}{};
