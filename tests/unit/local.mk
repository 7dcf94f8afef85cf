# SPDX-License-Identifier: GPL-2.0-or-later

check_PROGRAMS += tests/unit/test_lib_range
TESTS += tests/unit/test_lib_range
tests_unit_test_lib_range_SOURCES = tests/unit/test_lib_range.c lib/range.c lib/private.h

check_LIBRARIES += tests/unit/libwirecheck.a
tests_unit_libwirecheck_a_SOURCES = \
	tests/fuzz/law.c \
	tests/fuzz/law.h \
	tests/unit/wire_check.c \
	tests/unit/wire_check.h \
	tests/unit/wire_samples.c \
	tests/unit/wire_samples.h
wire_test_libs = tests/unit/libwirecheck.a wire/libbelaywire.a
wire_tests = \
	tests/unit/test_wire_client \
	tests/unit/test_wire_group \
	tests/unit/test_wire_hint \
	tests/unit/test_wire_snapshot
check_PROGRAMS += $(wire_tests)
TESTS += $(wire_tests)
tests_unit_test_wire_client_LDADD = $(wire_test_libs)
tests_unit_test_wire_group_LDADD = $(wire_test_libs)
tests_unit_test_wire_hint_LDADD = $(wire_test_libs)
tests_unit_test_wire_snapshot_LDADD = $(wire_test_libs)

ports_tests = tests/unit/test_config tests/unit/test_cpg_parts tests/unit/test_group_cpg tests/unit/test_group_local
check_PROGRAMS += $(ports_tests)
TESTS += $(ports_tests)
tests_unit_test_config_LDADD = $(PORTS_LIBS)
tests_unit_test_cpg_parts_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(COROSYNC_CFLAGS)
tests_unit_test_cpg_parts_LDADD = $(PORTS_LIBS)
# It brings functions of libcpg, libquorum and libcmap of its own, which win.
tests_unit_test_group_cpg_SOURCES = tests/unit/test_group_cpg.c \
	tests/unit/fake_corosync.c tests/unit/fake_corosync.h
tests_unit_test_group_cpg_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(COROSYNC_CFLAGS)
tests_unit_test_group_cpg_LDADD = $(PORTS_LIBS)
tests_unit_test_group_local_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_group_local_LDADD = $(PORTS_LIBS)

check_PROGRAMS += tests/unit/test_tool_options
TESTS += tests/unit/test_tool_options
tests_unit_test_tool_options_SOURCES = tests/unit/test_tool_options.c \
	tools/bench_options.c tools/json.c tools/latency.c tools/limit.c tools/lock_options.c tools/parse.c tools/tool.c
tests_unit_test_tool_options_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) -pthread
tests_unit_test_tool_options_LDADD = lib/libbelay.la wire/libbelaywire.a $(JSONC_LIBS)

check_LIBRARIES += tests/unit/libcorering.a
tests_unit_libcorering_a_SOURCES = tests/unit/core_ring.c tests/unit/core_ring.h
core_tests = tests/unit/test_core_volume tests/unit/test_core_delegation tests/unit/test_core_hint tests/unit/test_core_limits \
	tests/unit/test_core_loan tests/unit/test_core_protocol tests/unit/test_core_ranges
tests_unit_test_core_delegation_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_unit_test_core_volume_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_unit_test_core_hint_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_unit_test_core_limits_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_unit_test_core_loan_LDADD = tests/unit/libcorering.a core/libbelaycore.a
tests_unit_test_core_protocol_LDADD = tests/unit/libcorering.a core/libbelaycore.a
check_PROGRAMS += $(core_tests)
TESTS += $(core_tests)
tests_unit_test_core_ranges_LDADD = tests/unit/libcorering.a core/libbelaycore.a

daemon_tests = tests/unit/test_outbox tests/unit/test_journal tests/unit/test_daemon_parts \
	tests/unit/test_engine tests/unit/test_former tests/unit/test_hint_port \
	tests/unit/test_idle tests/unit/test_loan
check_PROGRAMS += $(daemon_tests)
TESTS += $(daemon_tests)
tests_unit_test_outbox_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_outbox_LDADD = $(BELAYD_LIBS)
tests_unit_test_journal_LDADD = $(BELAYD_LIBS)
tests_unit_test_daemon_parts_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_daemon_parts_LDADD = $(BELAYD_LIBS)
tests_unit_test_former_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_former_LDADD = $(BELAYD_LIBS)
tests_unit_test_hint_port_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_hint_port_LDADD = $(BELAYD_LIBS)
tests_unit_test_idle_SOURCES = tests/unit/test_idle.c tests/unit/fake_engine.c tests/unit/fake_engine.h
tests_unit_test_idle_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
# The core's locks are the test's.
tests_unit_test_idle_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=belay_core_locks_next
tests_unit_test_idle_LDADD = $(BELAYD_LIBS)
tests_unit_test_loan_SOURCES = tests/unit/test_loan.c tests/unit/fake_engine.c tests/unit/fake_engine.h
tests_unit_test_loan_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_loan_LDADD = $(BELAYD_LIBS)
tests_unit_test_engine_SOURCES = tests/unit/test_engine.c tests/unit/bus.c tests/unit/bus.h
tests_unit_test_engine_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_engine_LDADD = $(BELAYD_LIBS)

check_PROGRAMS += tests/unit/test_status_text
TESTS += tests/unit/test_status_text
tests_unit_test_status_text_SOURCES = tests/unit/test_status_text.c tools/json.c tools/status_text.c
tests_unit_test_status_text_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
tests_unit_test_status_text_LDADD = $(JSONC_LIBS)

slot_tests = tests/unit/test_slot_commit tests/unit/test_slot_litmus tests/unit/test_slot_ranges \
	tests/unit/test_slot_replay
check_PROGRAMS += $(slot_tests)
TESTS += $(slot_tests)
tests_unit_test_slot_commit_LDADD = slot/libbelayslot.a
tests_unit_test_slot_litmus_CFLAGS = $(AM_CFLAGS) -pthread
tests_unit_test_slot_litmus_LDADD = slot/libbelayslot.a
tests_unit_test_slot_ranges_LDADD = slot/libbelayslot.a
# It counts what is called.
tests_unit_test_slot_replay_CFLAGS = $(AM_CFLAGS) -finstrument-functions

check_PROGRAMS += tests/unit/test_lib_loan
TESTS += tests/unit/test_lib_loan
tests_unit_test_lib_loan_SOURCES = tests/unit/test_lib_loan.c \
	tests/unit/fake_belayd.c tests/unit/fake_belayd.h tests/ipc/peer.h
tests_unit_test_lib_loan_CFLAGS = $(AM_CFLAGS) -pthread
tests_unit_test_lib_loan_LDADD = lib/libbelay.la slot/libbelayslot.a wire/libbelaywire.a

# The preload library: what it calculates.
check_PROGRAMS += tests/unit/test_preload
TESTS += tests/unit/test_preload
tests_unit_test_preload_SOURCES = tests/unit/test_preload.c lib/preload/extent.c lib/preload/held.c \
	lib/preload/place.c lib/preload/table.c
tests_unit_test_preload_CFLAGS = $(AM_CFLAGS) -pthread
tests_unit_test_preload_LDADD = -lpthread

# belay-lvmlockd: what it runs, and what it decides of device-mapper, which is one in memory here.
check_LIBRARIES += tests/unit/libfakedm.a
tests_unit_libfakedm_a_SOURCES = tests/unit/fake_dm.c tests/unit/fake_dm.h
dm_tests = tests/unit/test_adopt tests/unit/test_dm tests/unit/test_policy
check_PROGRAMS += $(dm_tests) tests/unit/test_worker
TESTS += $(dm_tests) tests/unit/test_worker
tests_unit_test_adopt_LDADD = tests/unit/libfakedm.a lvmlockd/liblvmlockd.a
tests_unit_test_dm_LDADD = tests/unit/libfakedm.a lvmlockd/liblvmlockd.a
tests_unit_test_policy_LDADD = tests/unit/libfakedm.a lvmlockd/liblvmlockd.a
check_PROGRAMS += tests/unit/test_quorum
TESTS += tests/unit/test_quorum
tests_unit_test_quorum_SOURCES = tests/unit/test_quorum.c \
	tests/unit/fake_corosync.c tests/unit/fake_corosync.h
tests_unit_test_quorum_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS) $(COROSYNC_CFLAGS)
tests_unit_test_quorum_LDADD = lvmlockd/liblvmlockd.a $(PORTS_LIBS)
tests_unit_test_worker_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_worker_LDADD = lvmlockd/liblvmlockd.a $(QB_LIBS)

# belay-lvmlockd: one command for all nodes.
lv_tests = tests/unit/test_ask tests/unit/test_explain tests/unit/test_lv
check_PROGRAMS += $(lv_tests)
TESTS += $(lv_tests)
tests_unit_test_ask_LDADD = lvmlockd/liblvmlockd.a
tests_unit_test_explain_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
tests_unit_test_explain_LDADD = lvmlockd/liblvmlockd.a $(JSONC_LIBS)
tests_unit_test_lv_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_lv_LDADD = lvmlockd/liblvmlockd.a $(PORTS_LIBS) $(JSONC_LIBS)

check_PROGRAMS += tests/unit/test_tool_lv
TESTS += tests/unit/test_tool_lv
tests_unit_test_tool_lv_SOURCES = tests/unit/test_tool_lv.c tools/json.c tools/limit.c tools/lv_options.c \
	tools/lv_status.c tools/parse.c tools/tool.c
tests_unit_test_tool_lv_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) -pthread
tests_unit_test_tool_lv_LDADD = lib/libbelay.la wire/libbelaywire.a $(JSONC_LIBS)

# belay-lvmlockd: what lvm says, and what is written down.
lvm_tests = tests/unit/test_lvm_message tests/unit/test_lvm_state
check_PROGRAMS += $(lvm_tests)
TESTS += $(lvm_tests)
tests_unit_test_lvm_message_LDADD = lvmlockd/liblvmlockd.a
tests_unit_test_lvm_state_CFLAGS = $(AM_CFLAGS) $(QB_CFLAGS)
tests_unit_test_lvm_state_LDADD = lvmlockd/liblvmlockd.a lib/libbelay.la $(QB_LIBS) $(JSONC_LIBS)
