# What a node itself waits for it waits for still when its belayd is new.
# file: client.c
s{\n\t\t\tnode_wait_no_more\(c, cl\);}{\n\t\t\t;};
