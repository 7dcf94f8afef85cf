# A log is rewritten where it stands.
# file: slot/commit.c
s{\|\n\t\t\t\(\(loan->word & SLOT_HALF\) \^ SLOT_HALF\)}{| (loan->word & SLOT_HALF)};
