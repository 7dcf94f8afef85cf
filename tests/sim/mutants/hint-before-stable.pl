# A hint is taken before the own request is stable.
# file: hint.c
s{ && q->stable_at <= c->stable && free_early}{ && free_early};
