# What is lent to one client is lent to another as well.
# file: loan.c
s{\t\tif \(loan_at\(c, i\)->client != f->client && conflicting\(loan_at\(c, i\)->mode, f->mode\)\)\n\t\t\t\w+\(.*?\);\n}{\t\t;\n}s;
