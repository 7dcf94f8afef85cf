# An owner hints at a release while a request of its own is on its way.
# file: hint.c
s{\t\tif \(!request_at\(c, i\)->early\)\n\t\t\treturn;\n}{\t\t;\n};
