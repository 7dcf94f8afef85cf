# Owners of one process are not in each other's way within a loan.
# file: slot/commit.c
s{\tif \(slot_ranges_conflict\(&loan->held, &entry, NULL\)\)\n\t\treturn -EAGAIN;\n}{};
