# SPDX-License-Identifier: GPL-2.0-or-later

# All of belay-lvmlockd but its main(), so that tests can link what they name of it.
noinst_LIBRARIES += lvmlockd/liblvmlockd.a
lvmlockd_liblvmlockd_a_SOURCES = \
	lvmlockd/about.c lvmlockd/about.h lvmlockd/adoption.c lvmlockd/guard.c lvmlockd/guard.h \
	lvmlockd/life.c lvmlockd/life.h lvmlockd/locks.c lvmlockd/locks.h \
	lvmlockd/lvmlockd.h lvmlockd/message.c lvmlockd/message.h \
	lvmlockd/process.c lvmlockd/process.h \
	lvmlockd/request.c lvmlockd/request.h lvmlockd/request_admin.c lvmlockd/request_lock.c \
	lvmlockd/request_lv.c lvmlockd/request_vg.c lvmlockd/server.c lvmlockd/server.h \
	lvmlockd/state.c lvmlockd/state.h lvmlockd/turn.h lvmlockd/volume.h
lvmlockd_liblvmlockd_a_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(JSONC_CFLAGS) $(DEVMAPPER_CFLAGS) $(COROSYNC_CFLAGS)

lvmlockd_liblvmlockd_a_SOURCES += \
	lvmlockd/adopt.h lvmlockd/dm.h lvmlockd/policy.h lvmlockd/quorum.h lvmlockd/worker.h \
	lvmlockd/adopt.c \
	lvmlockd/dm.c lvmlockd/dm_ioctl.c lvmlockd/dm_ioctl.h lvmlockd/dm_text.c lvmlockd/dm_worker.c \
	lvmlockd/policy.c lvmlockd/policy_apply.c lvmlockd/policy_private.h lvmlockd/policy_text.c \
	lvmlockd/policy_undo.c lvmlockd/quorum.c \
	lvmlockd/worker.c lvmlockd/worker_child.c lvmlockd/worker_child.h

# One command for all nodes.
lvmlockd_liblvmlockd_a_SOURCES += \
	lvmlockd/agent.c lvmlockd/agent.h lvmlockd/agent_private.h lvmlockd/agent_run.c \
	lvmlockd/ask.c lvmlockd/ask.h lvmlockd/command.c lvmlockd/command.h lvmlockd/explain.c lvmlockd/explain.h \
	lvmlockd/group.c lvmlockd/group.h lvmlockd/holders.c lvmlockd/holders.h \
	lvmlockd/lv.c lvmlockd/lv.h lvmlockd/lvs.c lvmlockd/lvs.h \
	lvmlockd/verify.c lvmlockd/verify.h

LVMLOCKD_LIBS = lvmlockd/liblvmlockd.a lib/libbelay.la $(PORTS_LIBS) $(JSONC_LIBS) $(DEVMAPPER_LIBS)

sbin_PROGRAMS += lvmlockd/belay-lvmlockd
lvmlockd_belay_lvmlockd_SOURCES = lvmlockd/main.c daemon/notify.c daemon/notify.h \
	daemon/start.c daemon/start.h
lvmlockd_belay_lvmlockd_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
lvmlockd_belay_lvmlockd_LDADD = $(LVMLOCKD_LIBS)
