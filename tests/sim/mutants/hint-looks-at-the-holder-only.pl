# A hint is taken though others wait before.
# file: hint.c
s{if \(e->queue < q->queue && !e->test}{if (false && !e->test};
