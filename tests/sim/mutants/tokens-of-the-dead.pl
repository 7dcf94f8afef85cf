# A client dies with a loan, and nobody reckons with the tokens it gave.
# file: loan.c
s{\t\t/\* Nobody says how far it has counted\. \*/\n\t\tif \(d != 0\)\n\t\t\tdelegation_token\(c, d, token_max\(c, l\)\);\n}{};
