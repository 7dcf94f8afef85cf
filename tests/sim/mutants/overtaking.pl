# Nobody stands before anybody in the queue: only locks block.
# file: queue.c
s{(if \(e->test \|\|)}{return false; $1};
