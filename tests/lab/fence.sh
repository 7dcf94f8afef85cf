#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# LVs outlive what ends: a node that had one active, its belayd, its belay-lvmlockd.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/lab/common.sh
. "$top_srcdir/tests/lab/common.sh"

nodes_up 3
check "a VG on three nodes" volumes || bail_out "no volumes"
check "with an LV" new_lv 1 lv 64

# Who has it active writes as long as this holds.
write_to() { # NODE TEXT
	on "$1" "printf %-512s '$2' | dd of=/dev/vg/lv bs=512 oflag=direct status=none"
}
first_block() { on "$1" 'dd if=/dev/vg/lv bs=512 count=1 iflag=direct status=none' | xargs; }

check "node 2 activates it" on 2 lvchange -aey vg/lv
check "belayd of node 2 is killed" signal KILL belayd 2
check "and gone" wait_gone belayd 2
check "node 2 goes on writing" write_to 2 without-belayd
refuse "node 1 does not get the LV" on 1 lvchange -aey vg/lv
check "belayd starts again" start belayd 2
check "and serves" wait_synced 2
check "the LV is node 2's, as before" eventually locked_elsewhere 1 lvchange -aey vg/lv
check "which has it active" write_to 2 with-belayd
check "and may release it" eventually on 2 lvchange -an vg/lv
check "node 1 gets it" on 1 lvchange -aey vg/lv
is "$(first_block 1)" "with-belayd" "with all that node 2 wrote"

check "belayd of node 1 stops and starts" stop belayd 1
check "in order" start belayd 1
check "it serves" wait_synced 1
check "the LV is node 1's, as before" eventually locked_elsewhere 2 lvchange -aey vg/lv

check "belay-lvmlockd of node 1 is killed" signal KILL belay-lvmlockd 1
check "and gone" wait_gone belay-lvmlockd 1
check "the LV is node 1's, as before" locked_elsewhere 2 lvchange -aey vg/lv
check "which writes" write_to 1 without-lvmlockd
check "it starts again" serve_volumes 1
check "knows the LV" until_on 1 "the LV's lock" "lvmlockctl -i | grep -q 'LK LV ex'"
check "the LV is node 1's, as before" locked_elsewhere 2 lvchange -aey vg/lv
check "and lvm on node 1 works" on 1 'lvchange -an vg/lv && lvchange -asy vg/lv'
check "node 2 shares it" on 2 lvchange -asy vg/lv
check "belay-lvmlockd of node 2 is killed" signal KILL belay-lvmlockd 2
check "and gone" wait_gone belay-lvmlockd 2
check "meanwhile somebody deactivates the LV there without it" on 2 dmsetup remove vg-lv
check "it starts again" serve_volumes 2
check "node 2 does not have the LV any more" eventually on 1 'lvchange -an vg/lv && lvchange -aey vg/lv'
check "node 1 lets go" on 1 lvchange -an vg/lv

check "node 3 activates it" on 3 lvchange -aey vg/lv
check "and writes" write_to 3 last-words
check "the power of node 3 fails" lab kill 3
check "the others notice" wait_quorate 2 1 2
check "and go on" wait_synced 1 2
check "the LV stays node 3's" locked_elsewhere 1 lvchange -aey vg/lv
check "for others, too" locked_elsewhere 2 lvchange -asy vg/lv
check "other LVs go on" new_lv 1 other 32
check "and can be active" on 2 lvchange -aey vg/other
check "an operator has seen that node 3 is off" belay 1 fence-ack --yes 3
check "now node 1 gets the LV" on 1 lvchange -aey vg/lv
is "$(first_block 1)" "last-words" "with all that node 3 wrote"
check "node 3 comes back" lab boot 3
check "with corosync" serve 3
check "among the others" wait_quorate 3 1 2 3
check "and belayd" start belayd 3
check "which serves" wait_synced 3
check "and belay-lvmlockd" serve_volumes 3
check "it starts the VG" on 3 vgchange --lockstart vg
check "the LV is node 1's" locked_elsewhere 3 lvchange -aey vg/lv
check "until it lets go" on 1 lvchange -an vg/lv
check "then node 3 gets it" on 3 lvchange -aey vg/lv
done_testing
