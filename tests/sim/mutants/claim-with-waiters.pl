# A claim is accepted while others wait.
# file: claim.c
s{\t\texclude\(g, request_at\(c, c->(scratch|stack)\[k\]\)->start, .*?\);\n}{\t\t;\n};
