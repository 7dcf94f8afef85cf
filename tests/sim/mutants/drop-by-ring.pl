# What crossed a change of membership is dropped, a member's that goes on too.
# file: stable.c
s{(if \(c->from_new\)\n\t\treturn;)}{for (uint32_t i = 0; i < f->ack_count; i++) { uint32_t k = index_node(c, f->ack[i].node); if (k < c->node_count && !c->node[k].in_view) { c->from = c->node_count; return; } } $1};
