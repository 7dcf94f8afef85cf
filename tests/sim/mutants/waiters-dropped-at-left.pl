# The waiting requests of a node that left lose their place.
# file: member.c
s{(static void on_left\()}{static void mutant_drop(struct belay_core *c, uint32_t node) { for (uint32_t cl = c->node[node].clients; cl != 0; cl = client_at(c, cl)->node_next) for (uint32_t o = client_at(c, cl)->owners, no; o != 0; o = no) { no = owner_at(c, o)->client_next; for (uint32_t q = owner_at(c, o)->requests, nq; q != 0; q = nq) { nq = request_at(c, q)->owner_next; if (request_at(c, q)->queue != 0) { queue_drop(c, q); index_request_free(c, q); } } } } $1};
s{(tell\(c, BELAY_ACTION_NODE_LEFT, i\);)}{$1 mutant_drop(c, i);};
