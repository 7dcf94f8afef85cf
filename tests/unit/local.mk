# SPDX-License-Identifier: GPL-2.0-or-later

check_PROGRAMS += tests/unit/test_lib_range
TESTS += tests/unit/test_lib_range
tests_unit_test_lib_range_SOURCES = tests/unit/test_lib_range.c lib/range.c lib/private.h
