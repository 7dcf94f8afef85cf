# SPDX-License-Identifier: GPL-2.0-or-later
# On real corosync, in namespaces: "make check-cluster", as root.
CLUSTER_TESTS += \
	tests/cluster/apart.sh \
	tests/cluster/bed.sh \
	tests/cluster/fence.sh \
	tests/cluster/group.sh \
	tests/cluster/hints.sh \
	tests/cluster/join.sh \
	tests/cluster/lv.sh \
	tests/cluster/lvm.sh \
	tests/cluster/mutex.sh \
	tests/cluster/partition.sh \
	tests/cluster/pause.sh \
	tests/cluster/refused.sh \
	tests/cluster/restart.sh \
	tests/cluster/shim.sh \
	tests/cluster/two_node.sh
EXTRA_DIST += $(CLUSTER_TESTS) tests/cluster/bed tests/cluster/common.sh tests/cluster/lvm_common.sh

check_PROGRAMS += tests/cluster/group_probe tests/cluster/player tests/cluster/toucher
tests_cluster_player_LDADD = lib/libbelay.la
tests_cluster_toucher_LDADD = lib/libbelay.la
tests_cluster_group_probe_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_cluster_group_probe_LDADD = $(PORTS_LIBS)
