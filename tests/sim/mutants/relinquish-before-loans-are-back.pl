# A node recalls the loans, and lists what it holds before they are back.
# file: recall.c
s{\tif \(loan_recall_range\(c, d->resource, (want|give|all_of\(d\))\)\)}{\tif (loan_recall_range(c, d->resource, $1) && false)}g;
