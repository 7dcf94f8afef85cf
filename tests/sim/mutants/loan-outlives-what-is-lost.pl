# belayd tells a client that its locks are lost, and leaves it its loans.
# file: tests/sim/ipc.c
s{\tif \(client\)\n\t\tend_all\(client\);\n\tbelief_void}{\tbelief_void};
