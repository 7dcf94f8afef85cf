#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Unmodified lvm on a disk that three nodes share: who may have what active.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/lab/common.sh
. "$top_srcdir/tests/lab/common.sh"

nodes_up 3
check "a VG on the disk, started on three nodes" volumes || bail_out "no volumes"
is "$(on 3 vgs --noheadings -o vg_lock_type,vg_lock_args vg | xargs)" "dlm 1.0.0:lab.belay" "it is marked as belay's"

check "node 1 creates an LV" new_lv 1 lv 64
check "and activates it exclusively" on 1 lvchange -aey vg/lv
is "$(devices lv)" "64 linear, none, none" "it is active there"
check "node 2 may not, not exclusively" locked_elsewhere 2 lvchange -aey vg/lv
check "and not shared" locked_elsewhere 3 lvchange -asy vg/lv
is "$(devices lv)" "64 linear, none, none" "and has no device of it"
check "node 1 writes to it" on 1 'printf %-512s written | dd of=/dev/vg/lv bs=512 oflag=direct status=none'
check "and deactivates it" on 1 lvchange -an vg/lv
check "now node 2 may activate it" on 2 lvchange -aey vg/lv
is "$(on 2 'dd if=/dev/vg/lv bs=512 count=1 iflag=direct status=none' | xargs)" "written" "and has what node 1 wrote"
check "node 1 may not" locked_elsewhere 1 lvchange -aey vg/lv

# One command for all nodes. Node 3 gives it, and has no part in it.
check "belay lv takes it from node 2" belay 3 lv deactivate vg/lv --on n2
check "and gives it to node 1" belay 3 lv activate vg/lv --on n1 --exclusive
is "$(devices lv)" "64 linear, none, none" "it has moved"
check "who has it keeps it" belay_fails 3 lv activate vg/lv --on n2
is "$(devices lv)" "64 linear, none, none" "and nothing has changed"
lab run -t 60 2 'belay lv activate vg/lv --on n2 --timeout 50' >"$LAB_DIR/waits" 2>&1 &
waiter=$!
check "node 2 waits for it" until_on 3 "a waiter" "belay locks | grep -q waits"
check "node 1 lets go" on 1 lvchange -an vg/lv
check "node 2 gets it" wait "$waiter"
is "$(devices lv)" "none, 64 linear, none" "it has moved again"
check "and is deactivated" belay 2 lv deactivate vg/lv

check "belay lv activates it on all, shared" belay 3 lv activate vg/lv --all --shared
is "$(devices lv)" "64 linear, 64 linear, 64 linear" "it is active on each"
refuse "so none may have it for itself" on 1 lvchange -aey vg/lv
check "what node 1 writes" on 1 'printf %-512s shared | dd of=/dev/vg/lv bs=512 oflag=direct status=none'
is "$(on 3 'dd if=/dev/vg/lv bs=512 count=1 iflag=direct status=none' | xargs)" "shared" "node 3 reads"

check "node 2 extends it while all use it" on 2 lvextend --lockopt shupdate -L 96M vg/lv
is "$(devices lv)" "96 linear, 96 linear, 96 linear" "it has grown on each"
check "node 3 has an old table" on 3 \
	'dmsetup table vg-lv | sed "s/ 196608 / 131072 /" | dmsetup load vg-lv && dmsetup resume vg-lv'
is "$(devices lv)" "96 linear, 96 linear, 64 linear" "and a smaller device"
is "$(belay 1 lv status vg/lv | grep -c WRONG)" 1 "belay lv status finds that"
check "belay lv refreshes it" belay 1 lv refresh vg/lv --all
is "$(devices lv)" "96 linear, 96 linear, 96 linear" "it is the same on each"
check "belay lv status is content" belay 1 lv status vg/lv
check "belay lv deactivates it on all" belay 1 lv deactivate vg/lv --all
is "$(devices lv)" "none, none, none" "it is active nowhere"

# Where it cannot be done everywhere, it is done nowhere.
check "another LV" new_lv 2 other 32
check "for which there is no place on node 3" on 3 \
	'dmsetup create vg-other --uuid not-lvm --table "0 2048 zero"'
check "cannot be activated on all" belay_fails 1 lv activate vg/other --all --shared
is "$(device 1 other), $(device 2 other)" "none, none" "and is not active on the others"
check "or, if they shall keep it," belay_fails 1 lv activate vg/other --all --shared --keep-partial
is "$(device 1 other), $(device 2 other)" "32 linear, 32 linear" "is active on those"
check "the place is made" on 3 dmsetup remove vg-other
check "the third joins in" belay 1 lv activate vg/other --all --shared
is "$(devices other)" "32 linear, 32 linear, 32 linear" "and all have it"

check "an LV that LVM cannot share" on 1 \
	"lvcreate --config global/thin_check_executable='\"\"' -an -y -Zn -L 32M -V 32M --thinpool pool -n thin vg"
belay 1 lv activate vg/thin --all --shared >"$LAB_DIR/said" 2>&1
is "$? $(grep -c 'FAILED: it is thin' "$LAB_DIR/said")" "1 3" "is refused by each, with the reason"

# The end.
refuse "an LV that is active elsewhere is not removed" on 1 lvremove -y vg/other
check "belay lv deactivates the whole VG" belay 1 lv deactivate vg --all
is "$(lab all 'dmsetup ls' | grep -c vg-)" 0 "nothing of it is active"
check "an LV is removed" on 3 lvremove -y vg/lv vg/other vg/thin vg/pool
refuse "the VG is not, while others have it started" on 3 vgremove vg
check "node 1 stops it" on 1 vgchange --lockstop vg
check "and node 2" on 2 vgchange --lockstop vg
check "now it is removed" on 3 vgremove vg
check "and can be made anew by another node" on 1 vgcreate --shared vg /dev/sda
done_testing
