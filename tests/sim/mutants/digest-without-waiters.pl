# Waiting requests are left out of the digest.
# file: queue.c
s{c->digest \+= queue_hash\(c, q\);}{(void)queue_hash;};
s{c->digest -= queue_hash\(c, q\);}{};
