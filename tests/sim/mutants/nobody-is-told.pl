# Clients are not told that their locks are void.
# file: snapshot.c
s{if \(held && loses\)\s*core_emit\(c, &lost\);}{}s;
