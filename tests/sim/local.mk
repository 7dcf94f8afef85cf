# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/sim/sim
tests_sim_sim_SOURCES = \
	tests/sim/belief.c \
	tests/sim/client.c \
	tests/sim/codec.c \
	tests/sim/cpg.c \
	tests/sim/fault.c \
	tests/sim/judge.c \
	tests/sim/main.c \
	tests/sim/memory.c \
	tests/sim/node.c \
	tests/sim/random.h \
	tests/sim/script.c \
	tests/sim/sim.h \
	tests/sim/trace.c \
	tests/sim/world.c
tests_sim_sim_LDADD = core/libbelaycore.a wire/libbelaywire.a
