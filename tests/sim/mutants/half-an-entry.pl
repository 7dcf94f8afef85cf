# The entry is written after the swap that counts it.
# file: slot/commit_inline.h
s{\tslot_put_entry\(loan, slot_half_of\(loan, loan->word\) \+ slot_count\(loan->word\), start, end, handle, action\);\n(\tif \(!slot_swap\(loan, loan->word \+ SLOT_COUNT_ONE\)\)\n\t\treturn -ESTALE;\n)}{\tstruct slot_entry *at = slot_half_of(loan, loan->word) + slot_count(loan->word);\n$1\tslot_put_entry(loan, at, start, end, handle, action);\n};
