# A side without the majority keeps what it has.
# file: member.c
s{(\*ret_goes_on = ).*?;}{$1true;}s;
