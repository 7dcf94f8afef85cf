# SPDX-License-Identifier: GPL-2.0-or-later

# The ports of belayd and its configuration; tests link what they name of it.
noinst_LIBRARIES += daemon/libports.a
daemon_libports_a_SOURCES = \
	daemon/config.c daemon/config.h daemon/config_keys.c daemon/config_parts.h \
	daemon/cpg_info.c daemon/cpg_parts.h daemon/cpg_quorum.c daemon/cpg_view.c \
	daemon/group.h daemon/group_cpg.c daemon/group_local.c
daemon_libports_a_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(COROSYNC_CFLAGS) $(INIH_CFLAGS)
PORTS_LIBS = daemon/libports.a $(QB_LIBS) $(COROSYNC_LIBS) $(INIH_LIBS)
