# A hint is taken before the own request is stable.
# file: hint.c
s{\n\t    stable_with\(c, q->stable_at, vouches, &\(struct witness\)\{ c, q \}\) &&}{};
