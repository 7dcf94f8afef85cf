# Volumes are delegated as files are.
# file: deliver.c
s{!resource_always_arbitrated\(resource_at\(c, q->resource\)\) &&\s*}{};
