# What a node itself had outlives its fence.
# file: member.c
s{close_life\(c, i, true\)}{close_life(c, i, false)};
