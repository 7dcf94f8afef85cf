# Who uses a volume often may have it delegated.
# file: claim.c
s{ \|\| resource_always_arbitrated\((?:res|resource_at\(c, r\))\)}{}g;
