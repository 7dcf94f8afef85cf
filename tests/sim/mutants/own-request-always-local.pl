# A delegate's own request is decided locally although it is recalled.
# file: deliver.c
s{d != 0 && !delegation_at\(c, d\)->recalled\)}{d != 0)};
