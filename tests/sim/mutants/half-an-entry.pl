# The entry is written after the swap that counts it.
# file: slot/commit_inline.h
s{\t(slot_put_entry\(loan, )(slot_half_of\(loan, loan->word\) \+ slot_count\(loan->word\))(, start, end, handle, action\);\n)(\tif \(!slot_swap\(loan, loan->word \+ SLOT_COUNT_ONE\)\)\n\t\treturn -ESTALE;\n)}{\tstruct slot_entry *at = $2;\n$4\t$1at$3};
