# A hint for one waiter is taken by another, whom the releasing owner is still in the way of.
# file: hint.c
s{\(h->waiter != 0 && h->waiter != k->q->number\)}{false}g;
s{if \(table_each_conflict\(c, resource_at\(c, q->resource\), range_of\(q->start, q->end\),\n\t\t\t\t\(enum belay_mode\)q->mode, q->owner, still_holds, &rest\)\)}{(void)still_holds; (void)rest; if (false)};
