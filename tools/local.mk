# SPDX-License-Identifier: GPL-2.0-or-later
bin_PROGRAMS += tools/belay
tools_belay_SOURCES = \
	tools/belay.c \
	tools/bench.c \
	tools/bench.h \
	tools/bench_clients.c \
	tools/bench_cpg.c \
	tools/bench_cpg.h \
	tools/bench_options.c \
	tools/bench_pingpong.c \
	tools/bench_via.c \
	tools/dump.c \
	tools/fence_ack.c \
	tools/json.c \
	tools/latency.c \
	tools/latency.h \
	tools/limit.c \
	tools/lock.c \
	tools/lock.h \
	tools/lock_options.c \
	tools/locks.c \
	tools/locks.h \
	tools/lv.c \
	tools/lv.h \
	tools/lv_ask.c \
	tools/lv_holders.c \
	tools/lv_options.c \
	tools/lv_show.c \
	tools/lv_status.c \
	tools/parse.c \
	tools/replay.c \
	tools/run.c \
	tools/status.c \
	tools/status.h \
	tools/status_text.c \
	tools/tool.c \
	tools/tool.h
tools_belay_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(COROSYNC_CFLAGS) -pthread
tools_belay_LDADD = lib/libbelay.la daemon/libbelayjournal.a core/libbelaycore.a wire/libbelaywire.a \
	lvmlockd/liblvmlockd.a daemon/libports.a $(INIH_LIBS) $(JSONC_LIBS) \
	$(COROSYNC_LIBS)
