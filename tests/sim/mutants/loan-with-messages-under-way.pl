# A client takes a loan into use although messages of its own are on their way.
# file: tests/sim/loan.c
s{if \(client->sent\[letter->key\] != letter->messages\)}{if (false)};
