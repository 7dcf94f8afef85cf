# A client that has a loan and no lock is not told that it has lost it.
# file: snapshot.c
s{bool held = client_at\(c, cl\)->loans != 0;}{bool held = false;};
s{\t\tcore_emit\(c, &lost\); /\* loans were all it had \*/\n}{};
