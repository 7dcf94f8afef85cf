# SPDX-License-Identifier: GPL-2.0-or-later
# On real corosync, in namespaces: "make check-cluster", as root.
CLUSTER_TESTS += \
	tests/cluster/bed.sh
EXTRA_DIST += $(CLUSTER_TESTS) tests/cluster/bed tests/cluster/common.sh
