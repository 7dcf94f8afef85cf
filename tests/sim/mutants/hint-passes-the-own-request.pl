# A hint is taken although the owner has asked for something else there.
# file: hint.c
s{\n\t    alone\(c, q\) &&}{};
