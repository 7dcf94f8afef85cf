# A hint is taken though others wait before.
# file: hint.c
s{if \(e->queue < q->queue && queue_goes_first}{if (false && queue_goes_first};
