# SPDX-License-Identifier: GPL-2.0-or-later
# The engine: a pure state machine, no I/O (build-aux/check-core.sh proves it).
noinst_LIBRARIES += core/libbelaycore.a
core_libbelaycore_a_SOURCES = \
	core/claim.c \
	core/client.c \
	core/core.c \
	core/core.h \
	core/deadlock.c \
	core/delegation.c \
	core/deliver.c \
	core/digest.c \
	core/hint.c \
	core/index.c \
	core/inspect.c \
	core/internal.h \
	core/loan.c \
	core/member.c \
	core/pool.h \
	core/queue.c \
	core/recall.c \
	core/request.c \
	core/resource.c \
	core/snapshot.c \
	core/stable.c \
	core/table.c \
	core/tree.h \
	core/types.h
