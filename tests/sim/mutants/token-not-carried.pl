# The tokens an owner gave out are forgotten when it relinquishes.
# file: deliver.c
s{(/\* The largest is not to be believed[^\n]*\n\t)if \(op->token >= c->token && op->token < UINT64_MAX\)}{$1if (false)};
