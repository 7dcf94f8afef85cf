# The tokens an owner gave out are forgotten when it relinquishes.
# file: deliver.c
s{if \(op->token >= c->token( && [^)]*)?\)}{if (false)};
