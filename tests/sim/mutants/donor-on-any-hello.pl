# The snapshot is taken when the view changes, not at the joiner's HELLO.
# file: member.c
s{if \(member_lowest_synced\(c\)\)\n\t\ttell\(c, BELAY_ACTION_SNAPSHOT, i\);}{};
s{(\tqueue_confirm_all\(c\);\n\tstable_update\(c\);)}{\tfor (uint32_t k = 0; k < ev->view.joined_count; k++) { uint32_t i = index_node(c, ev->view.joined[k]); if (i < c->node_count && member_lowest_synced(c)) tell(c, BELAY_ACTION_SNAPSHOT, i); }\n$1};
