# A part of what was taken early is given back before it is granted.
# file: request.c
s{\t\thint_defer_release\(c, r, o, ev->lock\.range\);}{\t\trequest_release(c, r, o, ev->lock.range);};
