#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Make ./configure from configure.ac. Needed after a checkout from git only.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
	command -v "$tool" >/dev/null || {
		echo "autogen.sh: $tool is missing: apt-get install autoconf automake libtool pkg-config" >&2
		exit 1
	}
done
mkdir -p m4
exec autoreconf --install "$@"
