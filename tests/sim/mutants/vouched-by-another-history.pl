# A hint vouches for a request that its sender has in another place.
# file: hint.c
s{ \|\| q->prefix != h->prefix}{};
