# The owner grants until its relinquish is delivered.
# file: resource.c
s{&& !local_at\(c, r->local\)->relinquished;}{;};
