# The snapshot lacks the waiting requests.
# file: snapshot.c
s{if \(q->owner == 0 \|\| q->queue == 0 \|\| q->local\)}{if (true || q->owner == 0)};
