# Who takes a lock early does not reckon with the token of who had it.
# file: hint.c
s{\tif \(token < c->token\)\n\t\ttoken = c->token;}{\ttoken = c->token;};
