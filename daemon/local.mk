# SPDX-License-Identifier: GPL-2.0-or-later

# The ports of belayd and its configuration; tests link what they name of it.
noinst_LIBRARIES += daemon/libports.a
daemon_libports_a_SOURCES = \
	daemon/config.c daemon/config.h daemon/config_keys.c daemon/config_parts.h \
	daemon/cpg_info.c daemon/cpg_parts.h daemon/cpg_quorum.c daemon/cpg_view.c \
	daemon/group.h daemon/group_cpg.c daemon/group_local.c
daemon_libports_a_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(COROSYNC_CFLAGS) $(INIH_CFLAGS)
PORTS_LIBS = daemon/libports.a $(QB_LIBS) $(COROSYNC_LIBS) $(INIH_LIBS)

# The rest of belayd but its main(), so that tests can link what they name of it.
noinst_LIBRARIES += daemon/libbelayd.a
daemon_libbelayd_a_SOURCES = \
	daemon/admin.c daemon/clock.h daemon/descriptor.c daemon/descriptor.h \
	daemon/engine.c daemon/engine.h daemon/engine_order.c daemon/engine_private.h \
	daemon/former.c daemon/former.h \
	daemon/handle.c daemon/handle.h \
	daemon/hint_key.c daemon/hint_key.h daemon/hint_port.c daemon/hint_port.h \
	daemon/histogram.c daemon/histogram.h \
	daemon/hold.c daemon/hold.h daemon/identity.c daemon/identity.h \
	daemon/idle.c daemon/idle.h \
	daemon/journal.c daemon/key.h daemon/limit.h daemon/listen.c daemon/listen.h \
	daemon/loan.c daemon/loan.h \
	daemon/mounts.c daemon/mounts.h \
	daemon/names.c daemon/names.h daemon/node_lock.c daemon/node_lock.h daemon/notify.c daemon/notify.h \
	daemon/outbox.c daemon/outbox.h daemon/peer.c daemon/peer.h \
	daemon/record.c daemon/record.h \
	daemon/replies.c daemon/replies.h daemon/request.c \
	daemon/resource.c daemon/resource.h \
	daemon/server.c daemon/server.h daemon/server_private.h \
	daemon/share.c daemon/share.h \
	daemon/silence.c daemon/silence.h daemon/siphash.c daemon/siphash.h \
	daemon/snapshot.c daemon/snapshot.h \
	daemon/start.c daemon/start.h \
	daemon/status.c daemon/status.h daemon/status_locks.c daemon/stop.c daemon/stop.h
daemon_libbelayd_a_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(JSONC_CFLAGS)

# What belayd recorded, and how it reads: for `belay replay`, too.
noinst_LIBRARIES += daemon/libbelayjournal.a
daemon_libbelayjournal_a_SOURCES = \
	daemon/journal.h daemon/journal_read.c daemon/trace.c daemon/trace.h

BELAYD_LIBS = daemon/libbelayd.a daemon/libbelayjournal.a core/libbelaycore.a \
	slot/libbelayslot.a wire/libbelaywire.a $(PORTS_LIBS) $(JSONC_LIBS) -lpthread

sbin_PROGRAMS += daemon/belayd
daemon_belayd_SOURCES = daemon/main.c
daemon_belayd_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
daemon_belayd_LDADD = $(BELAYD_LIBS)
