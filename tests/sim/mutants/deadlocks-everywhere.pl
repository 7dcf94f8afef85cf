# Open file descriptions take part in deadlocks.
# file: deadlock.c
s{if \(o->id\.kind != BELAY_KIND_POSIX\)\s*return false;}{}s;
s{if \(owner_at\(c, q->owner\)->id\.kind != BELAY_KIND_POSIX\)\s*return false;}{}s;
