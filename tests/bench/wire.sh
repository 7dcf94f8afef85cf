#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The codecs of the group's messages: time and bytes for each op and record.
set -u
exec "${top_builddir:=.}/tests/bench/bench_wire"
