# A node takes a volume by a hint.
# file: hint.c
s{\n\t    owner_at\(c, q->owner\)->id.kind != BELAY_KIND_NODE &&}{};
