# Releases on their way when a claim is delivered are not applied.
# file: resource.c
s{\t\tapply_releases\(c, i\);}{};
