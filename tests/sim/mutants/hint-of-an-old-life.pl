# A hint of a life that is over counts.
# file: hint.c
s{ && n->incarnation == h->incarnation}{};
