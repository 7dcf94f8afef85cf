# Who takes a lock early does not reckon with the token of who had it.
# file: hint.c
s{q->token = \(token > c->token \? token : c->token\) \+ 1;}{(void)token; q->token = c->token + 1;};
