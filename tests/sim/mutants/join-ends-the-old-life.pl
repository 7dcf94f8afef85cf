# That a node joins is taken for the end of its former life.
# file: member.c
s{(\*ret_goes_on = )}{for (uint32_t k = 0; k < ev->view.joined_count; k++) { uint32_t i = index_node(c, ev->view.joined[k]); if (i < c->node_count && c->synced && c->node[i].standing == BELAY_NODE_LEFT) { client_release_node(c, i, true); c->node[i].standing = BELAY_NODE_CLOSED; } } $1};
