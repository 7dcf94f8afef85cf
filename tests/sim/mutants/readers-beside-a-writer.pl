# A reader is delegated what a writer has.
# file: deliver.c
s{return false;\n(\tif \(awaits\()}{continue;\n$1};
s{delegation_conflict\(c, res, c->from, range, mode, 0\)}{delegation_conflict(c, res, c->from, range, BELAY_MODE_SH, 0)};
