# A border between two parts is drawn through what is held.
# file: recall.c
s{close_over\(c, d, give\)(;| :)}{give$1};
