# SPDX-License-Identifier: GPL-2.0-or-later

# libbelay against a belayd played by the test.
check_PROGRAMS += tests/ipc/test_lib_peer tests/ipc/test_lib_stress
TESTS += tests/ipc/test_lib_peer tests/ipc/test_lib_stress
tests_ipc_test_lib_peer_SOURCES = tests/ipc/test_lib_peer.c tests/ipc/peer.h
tests_ipc_test_lib_peer_LDADD = lib/libbelay.la wire/libbelaywire.a -lpthread
tests_ipc_test_lib_stress_SOURCES = tests/ipc/test_lib_stress.c tests/ipc/peer.h
tests_ipc_test_lib_stress_LDADD = $(tests_ipc_test_lib_peer_LDADD)

# libbelay against a real belayd.
check_PROGRAMS += tests/ipc/test_lib
TESTS += tests/ipc/test_lib
tests_ipc_test_lib_LDADD = tests/ipc/libipc.a lib/libbelay.la -lpthread

# The same, many at once.
check_PROGRAMS += tests/ipc/test_exclusion
TESTS += tests/ipc/test_exclusion
tests_ipc_test_exclusion_LDADD = tests/ipc/libipc.a lib/libbelay.la wire/libbelaywire.a -lpthread

# The real belayd, standalone, and clients that speak the protocol by hand.
check_LIBRARIES += tests/ipc/libipc.a
tests_ipc_libipc_a_SOURCES = tests/ipc/belayd.c tests/ipc/belayd.h tests/ipc/raw.c tests/ipc/raw.h
IPC_LIBS = tests/ipc/libipc.a wire/libbelaywire.a
IPC_TESTS = tests/ipc/test_locks tests/ipc/test_files tests/ipc/test_limits tests/ipc/test_hostile \
	tests/ipc/test_admin tests/ipc/test_life tests/ipc/test_former tests/ipc/test_fuse \
	tests/ipc/test_loans
check_PROGRAMS += $(IPC_TESTS)
TESTS += $(IPC_TESTS)
tests_ipc_test_locks_LDADD = $(IPC_LIBS)
tests_ipc_test_files_LDADD = $(IPC_LIBS)
tests_ipc_test_limits_LDADD = $(IPC_LIBS)
tests_ipc_test_hostile_LDADD = $(IPC_LIBS)
tests_ipc_test_admin_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
tests_ipc_test_admin_LDADD = $(IPC_LIBS) daemon/libbelayjournal.a core/libbelaycore.a \
	wire/libbelaywire.a $(JSONC_LIBS)
tests_ipc_test_life_LDADD = $(IPC_LIBS)
tests_ipc_test_former_LDADD = $(IPC_LIBS)
tests_ipc_test_fuse_LDADD = $(IPC_LIBS)
tests_ipc_test_loans_LDADD = slot/libbelayslot.a $(IPC_LIBS) -lpthread

# belay(1) against a real belayd.
TESTS += tests/ipc/tool.sh
EXTRA_DIST += tests/ipc/tool.sh

check_PROGRAMS += tests/ipc/test_node_lock
TESTS += tests/ipc/test_node_lock
tests_ipc_test_node_lock_LDADD = tests/ipc/libipc.a lib/libbelay.la

# The same operations by the kernel and through belay.
check_PROGRAMS += tests/ipc/test_differential
TESTS += tests/ipc/test_differential
tests_ipc_test_differential_SOURCES = tests/ipc/test_differential.c tests/ipc/differential.h \
	tests/ipc/differential_model.c tests/ipc/differential_plan.c tests/ipc/differential_work.c
tests_ipc_test_differential_LDADD = tests/ipc/libipc.a lib/libbelay.la

# What locks do, as programs see it: by the kernel and by belay under the preload library.
check_PROGRAMS += tests/ipc/lock_rules
tests_ipc_lock_rules_SOURCES = tests/ipc/lock_rules.c tests/ipc/lock_rules.h tests/ipc/lock_rules_files.c \
	tests/ipc/lock_rules_wait.c
tests_ipc_lock_rules_LDADD = -lpthread
TESTS += tests/ipc/shim.sh
EXTRA_DIST += tests/ipc/shim.sh tests/ipc/shim_common.sh
TESTS += tests/ipc/shim_early.sh
EXTRA_DIST += tests/ipc/shim_early.sh
TESTS += tests/ipc/shim_odd.sh
EXTRA_DIST += tests/ipc/shim_odd.sh
TESTS += tests/ipc/shim_programs.sh
EXTRA_DIST += tests/ipc/shim_programs.sh tests/ipc/shim_work.sh

# What lvm says to lvmlockd, said to belay-lvmlockd.
check_LIBRARIES += tests/ipc/liblvm.a
tests_ipc_liblvm_a_SOURCES = tests/ipc/lvmlockd.c tests/ipc/lvmlockd.h
LVM_TESTS = tests/ipc/test_lvmlockd tests/ipc/test_lvmlockd_hostile tests/ipc/test_lvmlockd_life
check_PROGRAMS += $(LVM_TESTS)
TESTS += $(LVM_TESTS)
LVM_TEST_LIBS = tests/ipc/liblvm.a tests/ipc/libipc.a lvmlockd/liblvmlockd.a lib/libbelay.la
tests_ipc_test_lvmlockd_LDADD = $(LVM_TEST_LIBS)
tests_ipc_test_lvmlockd_hostile_LDADD = $(LVM_TEST_LIBS)
tests_ipc_test_lvmlockd_life_LDADD = $(LVM_TEST_LIBS)
