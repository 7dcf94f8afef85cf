# Answers that refuse are given before they are stable.
# file: request.c
s{if \(!core_serves\(c\) \|\| q->stable_at > c->stable\)}{if (!core_serves(c) || (q->result == 0 && !q->test && q->stable_at > c->stable))};
