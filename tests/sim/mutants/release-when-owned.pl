# A release that comes back after the claim is applied to the private table.
# file: deliver.c
s{r == 0 \|\| resource_at\(c, r\)->state != BELAY_STATE_ARB}{r == 0};
