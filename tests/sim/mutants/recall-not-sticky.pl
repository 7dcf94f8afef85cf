# A recall ends when the request that caused it is withdrawn.
# file: deliver.c
s{(queue_drop\(c, i\);\n\trequest_finish\(c, i, -EINTR\);)}{$1 if (resource_at(c, r)->state == BELAY_STATE_RECALL && resource_at(c, r)->waiting == 0) { resource_hash_out(c, resource_at(c, r)); resource_at(c, r)->state = BELAY_STATE_OWNED; resource_hash_in(c, resource_at(c, r)); }};
