# The entry is written after the swap that counts it.
# file: slot/commit.c
s{\tput_entry\(loan, half_of\(loan, loan->word\) \+ slot_count\(loan->word\), entry\);\n\tr = swap\(loan, loan->word \+ COUNT_ONE\);}{\tstruct slot_entry *at = half_of(loan, loan->word) + slot_count(loan->word);\n\tr = swap(loan, loan->word + COUNT_ONE);\n\tput_entry(loan, at, entry);};
