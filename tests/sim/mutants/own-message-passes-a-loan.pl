# belayd acts on a client's message before it has taken back what is lent to that client there.
# file: tests/sim/ipc.c
s{(static void take_back_range\(.*?\{)}{$1 return;}s;
