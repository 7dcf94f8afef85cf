# One node that vouches is enough, whatever a majority is.
# file: stable.c
s{return all \|\| have >= others;}{return all || have >= 1;};
