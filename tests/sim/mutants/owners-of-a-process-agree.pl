# Owners of one process are not in each other's way within a loan.
# file: slot/commit_inline.h
s{\tif \(!slot_likely\(slot_ranges_alone\(&loan->held, handle\)\) &&\n.*?\n\t\treturn -EAGAIN;\n}{}s;
