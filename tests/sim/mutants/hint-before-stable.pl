# A hint is taken before the own request is stable.
# file: hint.c
s{\n\t    q->stable_at <= c->stable &&}{};
