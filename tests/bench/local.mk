# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_DIST += tests/bench/run tests/bench/common.sh tests/bench/engine.sh

noinst_PROGRAMS += tests/bench/bench_wire
tests_bench_bench_wire_LDADD = wire/libbelaywire.a
EXTRA_DIST += tests/bench/wire.sh

noinst_PROGRAMS += tests/bench/bench_range tests/bench/fill
tests_bench_bench_range_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_bench_fill_LDADD = lib/libbelay.la

# Locks that stay in the process.
EXTRA_DIST += tests/bench/fast.sh
noinst_PROGRAMS += tests/bench/bench_pair tests/bench/bench_four tests/bench/bench_halves \
	tests/bench/bench_recall tests/bench/bench_nolock tests/bench/slow_link
tests_bench_bench_pair_SOURCES = tests/bench/bench_pair.c tests/bench/bench.h
tests_bench_bench_pair_LDADD = lib/libbelay.la -lpthread
tests_bench_bench_four_SOURCES = tests/bench/bench_four.c tests/bench/bench.h
tests_bench_bench_four_LDADD = lib/libbelay.la
tests_bench_bench_halves_SOURCES = tests/bench/bench_halves.c tests/bench/bench.h
tests_bench_bench_halves_LDADD = lib/libbelay.la
tests_bench_bench_recall_SOURCES = tests/bench/bench_recall.c tests/bench/bench.h
tests_bench_bench_recall_LDADD = lib/libbelay.la
tests_bench_bench_nolock_SOURCES = tests/bench/bench_nolock.c tests/bench/bench.h

# Locks of LVM.
EXTRA_DIST += tests/bench/volumes.sh tests/bench/dlm_stub.c
noinst_PROGRAMS += tests/bench/lv_handover
