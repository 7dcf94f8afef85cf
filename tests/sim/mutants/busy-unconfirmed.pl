# A try fails although the release is on its way.
# file: queue.c
s{(bool queue_release_on_way\(.*?\{)}{$1 (void)c; (void)i; (void)lock; return false;}s;
