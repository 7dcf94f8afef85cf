# A grant is believed when the own request is delivered, whoever else has it.
# file: stable.c
s{point = c->config.stability == .*?;}{point = c->node[c->self].seq;}s;
