# SPDX-License-Identifier: GPL-2.0-or-later
#
# A new target NAME needs fuzz_NAME.c, a corpus in corpus/NAME, and here the
# program in fuzz_targets with its _SOURCES, which must contain $(FUZZ_MAIN).
fuzz_targets = \
	tests/fuzz/fuzz_client \
	tests/fuzz/fuzz_config \
	tests/fuzz/fuzz_group \
	tests/fuzz/fuzz_hint \
	tests/fuzz/fuzz_lvm \
	tests/fuzz/fuzz_snapshot

# libFuzzer brings a main() of its own, and a run that lasts.
if FUZZING
FUZZ_MAIN = tests/fuzz/fuzz.h
AM_LDFLAGS_FUZZ = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
FUZZ_TESTS += tests/fuzz/fuzz.sh
else
FUZZ_MAIN = tests/fuzz/fuzz.h tests/fuzz/replay.c
AM_LDFLAGS_FUZZ = $(AM_LDFLAGS)
TESTS += $(fuzz_targets)
FUZZ_TESTS += $(fuzz_targets)
endif
check_PROGRAMS += $(fuzz_targets)
EXTRA_DIST += tests/fuzz/fuzz.sh tests/fuzz/replay.c tests/fuzz/corpus

tests_fuzz_fuzz_client_SOURCES = tests/fuzz/fuzz_client.c $(FUZZ_MAIN)
tests_fuzz_fuzz_client_LDADD = $(wire_test_libs)
tests_fuzz_fuzz_client_LDFLAGS = $(AM_LDFLAGS_FUZZ)
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz_config.c $(FUZZ_MAIN)
tests_fuzz_fuzz_config_LDADD = $(PORTS_LIBS)
tests_fuzz_fuzz_config_LDFLAGS = $(AM_LDFLAGS_FUZZ)
tests_fuzz_fuzz_group_SOURCES = tests/fuzz/fuzz_group.c $(FUZZ_MAIN)
tests_fuzz_fuzz_group_LDADD = $(wire_test_libs)
tests_fuzz_fuzz_group_LDFLAGS = $(AM_LDFLAGS_FUZZ)
tests_fuzz_fuzz_hint_SOURCES = tests/fuzz/fuzz_hint.c $(FUZZ_MAIN)
tests_fuzz_fuzz_hint_LDADD = $(wire_test_libs)
tests_fuzz_fuzz_hint_LDFLAGS = $(AM_LDFLAGS_FUZZ)
tests_fuzz_fuzz_lvm_SOURCES = tests/fuzz/fuzz_lvm.c $(FUZZ_MAIN)
tests_fuzz_fuzz_lvm_LDADD = lvmlockd/liblvmlockd.a
tests_fuzz_fuzz_lvm_LDFLAGS = $(AM_LDFLAGS_FUZZ)
tests_fuzz_fuzz_snapshot_SOURCES = tests/fuzz/fuzz_snapshot.c $(FUZZ_MAIN)
tests_fuzz_fuzz_snapshot_LDADD = $(wire_test_libs)
tests_fuzz_fuzz_snapshot_LDFLAGS = $(AM_LDFLAGS_FUZZ)

# The seeds are in the tree; after a change of format "make seeds" writes them anew.
check_PROGRAMS += tests/fuzz/seeds
TESTS += tests/fuzz/seeds
tests_fuzz_seeds_LDADD = $(wire_test_libs)

seeds: tests/fuzz/seeds
	tests/fuzz/seeds $(srcdir)/tests/fuzz/corpus
.PHONY: seeds
