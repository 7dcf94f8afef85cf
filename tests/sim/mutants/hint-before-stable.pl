# A hint is taken before the own request is stable.
# file: hint.c
s{stable_with\(c, q->stable_at, vouches, &\(struct witness\)\{ c, q \}\)}{(vouches != NULL)};
