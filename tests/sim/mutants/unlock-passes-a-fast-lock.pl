# A client sends a message about what it goes on deciding in a loan.
# file: tests/sim/loan.c
s{\tloan_give_up\(sim, client, ask\.key, &range\);\n}{};
