# SPDX-License-Identifier: GPL-2.0-or-later

# libbelay against a belayd played by the test.
check_PROGRAMS += tests/ipc/test_lib_peer
TESTS += tests/ipc/test_lib_peer
tests_ipc_test_lib_peer_SOURCES = tests/ipc/test_lib_peer.c tests/ipc/peer.h
tests_ipc_test_lib_peer_LDADD = lib/libbelay.la wire/libbelaywire.a -lpthread
