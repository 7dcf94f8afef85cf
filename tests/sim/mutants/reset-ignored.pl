# A new life does not end the old one.
# file: member.c
s{(c->synced && i != c->self && \(n->clients != 0)}{false && $1};
