#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Unmodified lvm on belay, on one node and on three: what its commands do, what they are refused, and
# what they say then. There is no device-mapper here: an LV counts as active while it is locked.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"
# shellcheck source=tests/cluster/lvm_common.sh
. "$top_srcdir/tests/cluster/lvm_common.sh"
command -v lvm >/dev/null || skip_all "lvm2 is not installed"
trap 'lvm_no_disk; disk=${ours:-} lvm_no_disk; clean_up' EXIT
lvm_disk 200 || skip_all "this host has no loop devices"

check "three nodes serve locks" cluster 3 || bail_out "no cluster"
lvm_node 1 2 3
check "belay-lvmlockd runs on them" bed start belay-lvmlockd 1 2 3

# says WORDS NODE COMMAND...: it fails, and says that. complains: whatever status it ends with.
complains() {
	local words=$1 output
	output=$(lvm "${@:2}")
	[[ $output == *"$words"* ]] || { echo "$output"; return 1; }
}
says() {
	local output
	output=$(lvm "${@:2}") && { echo "it succeeds: $output"; return 1; }
	[[ $output == *"$1"* ]] || { echo "$output"; return 1; }
}
report() { lvm "$1" vgs --noheadings -o "$2" vg | tr -d ' '; }
# locks NODE LV: this node's lock, by lvmlockctl.
locks() {
	local uuid
	uuid=$(lvm 1 lvs --noheadings -o lv_uuid --nolocking "$2" | tr -d ' ')
	bed exec "$1" lvmlockctl -i | awk -v uuid="$uuid" '$1 == "LK" && $2 == "LV" && $4 == uuid { print $3 }'
}
logged() { grep -q -e "$2" "$(bed files "$1")/log/belay-lvmlockd.out"; }

# raw NODE REQUEST: of lvmlockd's protocol, where no command of lvm says or shows as much.
raw() {
	bed exec "$1" python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect("/run/lvm/lvmlockd.socket")
s.sendall((sys.argv[1] + "\n##\n").encode())
print(s.recv(65536).decode())' "$2"
}

# ---- one node ----

check "a shared VG" lvm_ready 1 vgcreate --shared vg "$disk" || bail_out "no VG"
is "$(report 1 lock_type,lock_args)" "dlm1.0.0:bed.belay" "it carries our marker"
is "$(report 1 vg_attr)" "wz--ns" "and is shared"
for lv in one two; do check "LV $lv" lvm 1 lvcreate -an -L4M -n "$lv" vg; done
is "$(lvm 1 lvs --noheadings -o lv_lock_args vg/one | tr -d ' ')" dlm "which has lock_args, too"
check "it is activated" lvm 1 lvchange -aey vg/one
is "$(locks 1 vg/one)" ex "and locked"
check "twice" lvm 1 lvchange -aey vg/one
check "the VG does not stop" says "LVs must first be deactivated" 1 vgchange --lock-stop vg
check "it is deactivated" lvm 1 lvchange -an vg/one
is "$(locks 1 vg/one)" "" "and unlocked"
check "once more" lvm 1 lvchange -an vg/one
check "an LV is extended" lvm 1 lvextend -L8M vg/one
check "gets another name" lvm 1 lvrename vg one uno
check "and is removed" lvm 1 lvremove -y vg/uno
check "in one word" lvm 1 lvcreate -an -L4M -n one vg
check "the VG gets another name" lvm 1 vgrename vg other
is "$(bed exec 1 lvmlockctl -i | grep -c '^VG other ')" 1 "under which it is started"
check "and its old one again" lvm 1 vgrename other vg
check "the VG stops" lvm 1 vgchange --lock-stop vg
check "without locks it is only read" lvm 1 vgs vg
check "not written" says "due to failed lock" 1 lvcreate -an -L4M -n three vg
check "nor are LVs activated" says "due to failed lock" 1 lvchange -aey vg/one
check "it starts" lvm 1 vgchange --lock-start vg

# ---- three nodes ----

for node in 2 3; do check "node $node starts it" lvm "$node" vgchange --lock-start vg; done
check "node 1 has LV one exclusively" lvm 1 lvchange -aey vg/one
check "node 2 is refused" says "LV locked by other host: vg/one" 2 lvchange -aey vg/one
check "shared as well" says "LV locked by other host: vg/one" 2 lvchange -asy vg/one
check "it may not remove it" says "LV locked by other host: vg/one" 2 lvremove -y vg/one
check "node 1 gives it up" lvm 1 lvchange -an vg/one
check "node 2 has it" lvm 2 lvchange -aey vg/one
check "and gives it up" lvm 2 lvchange -an vg/one
for node in 1 2 3; do check "node $node shares it" lvm "$node" lvchange -asy vg/one; done
is "$(locks 1 vg/one)$(locks 2 vg/one)$(locks 3 vg/one)" shshsh "all have it"
check "one alone is refused" says "LV locked by other host: vg/one" 1 lvchange -aey vg/one
check "changes are, too" says "already locked with incompatible mode" 2 lvextend -L8M vg/one
for node in 1 2 3; do check "node $node gives it up" lvm "$node" lvchange -an vg/one; done
# vgrename succeeds, as far as its status goes.
check "the VG gets no other name under others" complains 'not stopped on other hosts' 1 vgrename vg other
is "$(report 2 vg_name)" vg "indeed"

# ---- the queue ----

# Whoever has the VG's lock is a client of belayd, so that it has it for as long as the test wants.
check "the VG's lock is taken on node 3" hold vglock 3 volumes:VG:vg -x --name
lvm 2 lvcreate -an -L4M -n waited vg >"$BED_DIR/waited" 2>&1 &
waiter=$!
waiting() { bed exec 2 lvmlockctl -i | grep -q "^LW VG ex"; }
check "lvcreate on node 2 waits for it" eventually waiting
check "node 3 lets go" release vglock
check "and it is done" wait "$waiter"
is "$(grep -c Retrying "$BED_DIR/waited")" 0 "without a retry"
check "an LV made on node 2 is known to node 3" lvm 3 lvs vg/waited

# ---- what dies ----

check "node 2 has LV two exclusively" lvm 2 lvchange -aey vg/two
check "its belay-lvmlockd is killed" bed signal KILL belay-lvmlockd 2
check "and gone" bed wait-gone belay-lvmlockd 2
check "the LV stays locked" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two
check "a new one starts" bed start belay-lvmlockd 2
knows() { [ "$(locks 2 vg/two)" = ex ]; }
check "and knows the LV" eventually knows
check "which stays locked" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two

check "its belayd is killed" bed signal KILL belayd 2
check "and gone" bed wait-gone belayd 2
check "the LV stays locked" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two
check "node 2 can lock nothing" says "lock start in progress" 2 lvchange -aey vg/one
check "a new belayd starts" bed start belayd 2
check "and serves" bed wait-synced 2
serves() { lvm 2 lvchange -aey vg/one; }
check "node 2 locks again" eventually serves
check "what it had is still its own" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two
check "until it gives it up" lvm 2 lvchange -an vg/two vg/one
check "then node 1 has it" lvm_ready 1 lvchange -aey vg/two
check "and gives it up" lvm 1 lvchange -an vg/two

check "node 2 has LV two exclusively" lvm 2 lvchange -aey vg/two
check "the belayds of all nodes are killed" bed signal KILL belayd 1 2 3
check "and gone" bed wait-gone belayd 1 2 3
check "new ones start" bed start belayd 1 2 3
check "and serve" bed wait-synced 1 2 3
check "node 1 locks again" lvm_ready 1 lvchange -aey vg/one
check "LV two is node 2's as before" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two
check "node 2 knows" lvm_ready 2 lvchange -aey vg/two
check "and gives it up" lvm 2 lvchange -an vg/two
check "node 1, too" lvm 1 lvchange -an vg/one

# ---- a node that is fenced, and does not know ----

check "node 1 has LV two exclusively" lvm_ready 1 lvchange -aey vg/two
check "it is cut off" bed partition 1 "2 3"
check "the others go on" bed wait-quorate 2 2 3
check "without it" bed wait-synced 2 3
check "the LV stays locked" says "LV locked by other host: vg/two" 3 lvchange -aey vg/two
check "node 1 counts as fenced" belay 2 fence-ack 1 --yes
check "node 3 gets the LV" lvm_ready 3 lvchange -aey vg/two
check "the network is whole again" bed heal
check "for all" bed wait-quorate 3 1 2 3
check "node 1 serves" bed wait-synced 1
check "it learns that the LV is not its own any more" eventually logged 1 "has lost its lock"
mode() {
	raw "$1" "request = \"query_lock_lv\" vg_name = \"vg\" lv_uuid = \"$(lvm 2 lvs --noheadings -o lv_uuid \
		--nolocking vg/two | tr -d ' ')\"" | sed -n 's/^mode = "\(.*\)"$/\1/p'
}
is "$(mode 1)" un "it says so to whoever asks"
is "$(mode 3)" ex "node 3 has it"
told() { belay 2 lv status vg/two | grep -q "the lock on it is lost"; }
check "belay lv status says it" eventually told
check "node 1 does not get it again" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two
check "but gives it up" lvm 1 lvchange -an vg/two
untold() { ! told; }
check "then all is well" untold
check "it stays node 3's" says "LV locked by other host: vg/two" 2 lvchange -aey vg/two

# ---- a node that is shut down ----

check "node 2 is shut down in order" eval 'bed stop belay-lvmlockd 2 && bed stop belayd 2'
standing() { status 1 | jq -r --argjson node "$1" '.nodes[] | select(.node == $node) | .standing'; }
left() { [ "$(standing 2)" = closed ]; }
check "nothing of it is left" eventually left
check "it comes again" eval 'bed start belayd 2 && bed wait-synced 2 && bed start belay-lvmlockd 2'
check "and has the VG as before" lvm_ready 2 lvchange -aey vg/one
check "it gives up the LV" lvm 2 lvchange -an vg/one
check "node 3 gives up its own" lvm 3 lvchange -an vg/two
check "node 3 stops the VG" lvm 3 vgchange --lock-stop vg
check "node 1, too" lvm 1 vgchange --lock-stop vg
check "node 1 starts it again" lvm 1 vgchange --lock-start vg
check "for node 2 it is started" complains 'not stopped on other hosts' 1 vgrename vg other
check "node 3 starts it again" lvm 3 vgchange --lock-start vg

# ---- power ----

check "node 3 has LV two exclusively" lvm_ready 3 lvchange -aey vg/two
check "its power fails" bed kill-node 3
check "the others notice" bed wait-quorate 2 1 2
check "the LV stays locked" says "LV locked by other host: vg/two" 1 lvchange -aey vg/two
belay 1 fence-ack 3 --yes >"$BED_DIR/ack" 2>&1
check "it is fenced: node 1 gets it" lvm_ready 1 lvchange -aey vg/two
check "and gives it up" lvm 1 lvchange -an vg/two

# ---- a VG that another node has removed ----

free_vg() { raw 1 'request = "free_vg" vg_name = "vg"' | grep -q 'op_result = 0'; }
check "node 1 removes the VG" free_vg
removed() { says "VG vg lock failed: removed" 2 lvcreate -an -L4M -n three vg; }
check "node 2 is told" eventually removed
for node in 1 2; do check "node $node starts the VG, which is there again" lvm "$node" vgchange --lock-start vg; done
check "node 2 can use it" lvm 2 lvs vg

# ---- lvmlockd's own VGs ----

# stock NODE COMMAND...: with lvmlockd itself, which in test mode has a cluster called "test".
# It runs beside ours, at other places.
stock() {
	bed exec "$1" env LVM_SUPPRESS_FD_WARNINGS=1 LVM_LVMLOCKD_SOCKET=/run/stock.socket lvm "${@:2}"
}
# It does not end by itself while it has VGs.
stock_gone() { ! bed exec 1 pgrep -x lvmlockd; }
no_stock() {
	bed exec 1 pkill -KILL -x lvmlockd && eventually stock_gone &&
		bed exec 1 rm -f /run/stock.socket /run/stock.pid
}
if command -v lvmlockd >/dev/null; then
	truncate -s 50M "$BED_DIR/disk2"
	ours=$disk
	disk=$(losetup -f --show "$BED_DIR/disk2")
	lvm_node 1
	bed exec 1 timeout 120 lvmlockd -f -T -g dlm -A 0 -s /run/stock.socket -p /run/stock.pid \
		</dev/null >"$BED_DIR/stock.log" 2>&1 &
	check "lvmlockd starts" eventually bed exec 1 test -S /run/stock.socket
	check "and makes a VG of its own" stock 1 vgcreate --shared theirs "$disk"
	check "which ours does not start" says "invalid parameters for dlm" 1 vgchange --lock-start theirs
	check "the log says how to convert it" logged 1 "vgchange --lock-type none --lock-opt force theirs"
	check "lvmlockd ends" no_stock
	check "as it says" lvm 1 vgchange --yes --lock-type none --lock-opt force theirs
	check "it is converted" lvm 1 vgchange --yes --lock-type dlm theirs
	check "and starts" lvm 1 vgchange --lock-start theirs
	is "$(lvm 1 vgs --noheadings -o lock_args theirs | tr -d ' ')" "1.0.0:bed.belay" "with our marker"

	# lvmlockd, not in test mode, reads the cluster's name where the kernel's lock manager has it. A name
	# that differs from its own it refuses before it needs that lock manager.
	# shellcheck disable=SC2016
	bed exec 1 unshare -m bash -c '
		mount --make-rprivate / && mount -t tmpfs none /sys/kernel &&
		mkdir -p /sys/kernel/config/dlm/cluster && printf bed >/sys/kernel/config/dlm/cluster/cluster_name &&
		exec timeout 120 lvmlockd -f -g dlm -A 0 -s /run/stock.socket -p /run/stock.pid' \
		</dev/null >"$BED_DIR/stock2.log" 2>&1 &
	check "lvmlockd of a cluster called as ours" eventually bed exec 1 test -S /run/stock.socket
	refused() {
		local output
		output=$(stock 1 vgchange --lock-start theirs 2>&1)
		[[ $output == *"invalid parameters for dlm"* ]] || { echo "$output"; return 1; }
	}
	check "does not start a VG of ours" refused
	check "it ends" no_stock
	check "which is removed" lvm 1 vgremove -y theirs
	losetup -d "$disk"
	disk=$ours ours=
	lvm_node 1
else
	skip "VGs of lvmlockd" "lvm2-lockd is not installed"
fi

# ---- the end ----

check "LVs are removed" lvm 1 lvremove -y vg
check "the VG is not, under others" says 'not stopped on other hosts' 1 vgremove vg
check "node 2 stops all VGs" bed exec 2 lvmlockctl --stop-lockspaces
check "then it is" lvm 1 vgremove vg
for node in 1 2; do check "belay-lvmlockd of node $node ends" bed stop belay-lvmlockd "$node"; done
check "in order" grep -qx 0 "$(bed files 1)/log/belay-lvmlockd.exit"
done_testing
