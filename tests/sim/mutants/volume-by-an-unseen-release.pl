# A node believes in a volume as soon as it has the release that it waited for.
# file: request.c
s{\? q->weakens : !q->test && owner_at\(c, q->owner\)->id.kind == BELAY_KIND_NODE}{&& q->weakens};
s{if \(result < 0 && q->weakens\)}{if (result < 0 && q->weakens)};
