# A border between two parts is drawn through what is held.
# file: recall.c
s{return close_over\(c, d, give\);}{return give;};
