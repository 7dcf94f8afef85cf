# What a node that left held and awaited is dropped at once.
# file: member.c
s{(tell\(c, BELAY_ACTION_NODE_LEFT, i\);)}{$1 client_release_node(c, i, true);};
