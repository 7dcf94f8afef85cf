# All grants of a resource get one token.
# file: request.c
s{q->token = \+\+c->token;}{q->token = c->token;};
s{q->token = d->token \+ 1;}{q->token = d->token;};
