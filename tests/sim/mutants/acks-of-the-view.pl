# A majority of the present view is enough, not of all that are configured.
# file: stable.c
s{uint32_t others = member_majority\(c\) - 1;}{uint32_t others = 0; for (uint32_t k = 0; k < c->node_count; k++) others += c->node[k].in_view; others /= 2;};
