# When a node is gone, others look only after their own tries.
# file: queue.c
s{(if \(q->owner != 0 && q->queue != 0 && )(!q->wait\)\n\t\t\tqueue_confirm\(c, i\);\n\t\}\n\})}{$1q->own && $2};
