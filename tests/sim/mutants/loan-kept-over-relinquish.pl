# A node gives up a range and leaves its clients their loans there.
# file: recall.c
s{loan_recall_range\(c, d->resource, (want|give|all_of\(d\))\)}{false}g;
