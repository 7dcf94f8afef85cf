# A node grants by its delegation until its relinquish is delivered.
# file: delegation.c
s{if \(d == NULL \|\| delegation_gives\(d, range\) \|\|\n.*?\)\)\n}{if (d == NULL)\n}s;
