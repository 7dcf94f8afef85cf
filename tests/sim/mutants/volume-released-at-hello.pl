# What a node itself has ends when its belayd comes back.
# file: member.c
s{(n->clients != 0 \|\| n->standing != BELAY_NODE_CLOSED\)\)\n\t\tclose_life\(c, i, )false}{$1true};
