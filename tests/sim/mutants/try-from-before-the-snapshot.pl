# A node that is back does not answer tries that met its volumes before.
# file: snapshot.c
s{\n\tqueue_confirm_all\(c\);}{};
