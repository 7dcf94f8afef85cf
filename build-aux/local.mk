# SPDX-License-Identifier: GPL-2.0-or-later
dist_check_SCRIPTS = \
	build-aux/check-configure.sh \
	build-aux/check-core.sh \
	build-aux/check-headers.sh \
	build-aux/check-man.sh \
	build-aux/check-scripts.sh \
	build-aux/check-symbols.sh \
	build-aux/check-units.sh \
	build-aux/tidy.sh
EXTRA_DIST += .shellcheckrc tests/tap.sh
# They look at the tree, not at a build: once is enough.
if INSTRUMENTED
AM_TESTS_ENVIRONMENT += INSTRUMENTED=yes; export INSTRUMENTED;
else
TESTS += $(dist_check_SCRIPTS)
endif
