# A request is withdrawn here and nobody else is told.
# file: request.c
s{op\.request = q->number;\s*core_send\(c, &op, true, r, i, 0\);}{}s;
