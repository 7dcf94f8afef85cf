# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_DIST += tests/bench/run tests/bench/common.sh tests/bench/engine.sh

noinst_PROGRAMS += tests/bench/bench_wire
tests_bench_bench_wire_LDADD = wire/libbelaywire.a
EXTRA_DIST += tests/bench/wire.sh

noinst_PROGRAMS += tests/bench/bench_range tests/bench/fill
tests_bench_bench_range_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_bench_fill_LDADD = lib/libbelay.la
