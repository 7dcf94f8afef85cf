# A node that asked for less, and lost the order then, may think that it has what it had.
# file: request.c
s{\n\tlost \|= q->weakens && owner_at\(c, q->owner\)->id.kind == BELAY_KIND_NODE;}{};
