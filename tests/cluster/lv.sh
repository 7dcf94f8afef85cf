#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# belay lv on three nodes with unmodified lvm: one command for all of them,
# what is taken back, what is waited for, and what is said of it. There is no
# device-mapper here, so nothing counts as verified, and the locks tell what was done.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/cluster/common.sh
. "$top_srcdir/tests/cluster/common.sh"
# shellcheck source=tests/cluster/lvm_common.sh
. "$top_srcdir/tests/cluster/lvm_common.sh"
command -v lvm >/dev/null || skip_all "lvm2 is not installed"
trap 'lvm_no_disk; clean_up' EXIT
lvm_disk 200 || skip_all "this host has no loop devices"

check "three nodes serve locks" cluster 3 || bail_out "no cluster"
lvm_node 1 2 3
check "belay-lvmlockd runs on them" bed start belay-lvmlockd 1 2 3
check "a shared VG" lvm_ready 1 vgcreate --shared vg "$disk" || bail_out "no VG"
for node in 2 3; do check "node $node starts it" lvm_ready "$node" vgchange --lock-start vg; done
for lv in one two; do check "LV $lv" lvm 1 lvcreate -an -L4M -n "$lv" vg; done

# lv NODE ARGUMENT...: belay lv; its JSON is kept. Status 1 is that of what nobody verified.
lv() { belay "$1" lv "${@:2}" --json >"$BED_DIR/lv.json" 2>"$BED_DIR/lv.err"; }
said() { jq -r "$1" "$BED_DIR/lv.json"; }
# does NODE ARGUMENT...: all that is asked is done, as far as lvm knows; but that is not success.
does() {
	lv "$@"
	[ $? -eq 1 ] && [ "$(said '"\(.op_result) \(.verified)"')" = "0 false" ]
}
# fails NODE ARGUMENT...: not all of it is done.
fails() {
	lv "$@"
	[ $? -eq 1 ] && [ "$(said '.op_result < 0')" = true ]
}
# locks LV: which nodes have it locked, and how: "1 ex 3 sh".
locks() {
	belay 1 lv status --json | jq -r --arg lv "vg/$1" \
		'[.lvs[] | select(.lv == $lv) | .nodes[] | select(.lock != "un") | "\(.node) \(.lock)"] | join(" ")'
}
reason() { said "[.lvs[] | select(.lv == \"vg/$1\") | .nodes[] | select(.node == $2) | .reason][0]"; }

# ---- one node, and another ----

check "node 2 gets it because node 1 asks" does 1 activate vg/one --on n2
is "$(locks one)" "2 ex" "exclusively"
is "$(reason one 2)" "not verified: this machine has no device-mapper" "nobody claims that it is verified"
check "node 1 does not get it as well" fails 1 activate vg/one
like() { case $1 in *"$2"*) ;; *) echo "# $1"; return 1 ;; esac; }
check "and hears why" like "$(reason one 1)" "another node has it locked"
is "$(locks one)" "2 ex" "nothing is changed"
check "given up there" does 3 deactivate vg/one --on 2
check "node 1 gets it" does 1 activate vg/one
is "$(locks one)" "1 ex" "alone"
refuse "an exclusive one on two nodes makes no sense" lv 1 activate vg/one --exclusive --on n1,n2

# ---- all nodes, and what is taken back ----

check "shared on all fails while node 2 has one of them" \
	eval 'does 2 deactivate vg/one --on n1 && does 2 activate vg/two && fails 1 activate vg/two --shared --on n1,n3'
is "$(locks two)" "2 ex" "the node that has it keeps it"
check "all of the VG, on two nodes, fails for the same reason" fails 1 activate vg --on n1,n3
is "$(locks one)" "" "and what had worked is taken back"
is "$(said '[.nodes[].undone.op_result] | unique | tostring')" "[0]" "that is told"
check "unless it is to stay" fails 1 activate vg --on n1,n3 --keep-partial
is "$(locks one)" "1 sh 3 sh" "then it does"
check "it goes everywhere, with one command" does 2 deactivate vg --all
is "$(locks one)$(locks two)" "" "and nobody has anything"
check "who has it alone shares it, if all shall have it" eval 'does 2 activate vg/two && does 1 activate vg/two --all'
is "$(locks two)" "1 sh 2 sh 3 sh" "now all have it"
check "a node that has it exclusively" eval 'does 1 deactivate vg --all && does 1 activate vg/one --on n2'
check "has it again exclusively, if sharing failed for another LV" \
	eval 'does 1 activate vg/two --on n3 && fails 2 activate vg --on n1,n2'
is "$(locks one) $(locks two)" "2 ex 3 ex" "as before"
check "it goes" does 1 deactivate vg --all

# ---- waiting ----

check "node 2 has it" does 1 activate vg/one --on n2
check "node 3 waits for it in vain" fails 3 activate vg/one --timeout 0.3
check "and says for how long" like "$(reason one 3)" "for all of the 0.3 s"
belay 3 lv activate vg/one --timeout 60 --json >"$BED_DIR/waited.json" 2>/dev/null &
waiter=$!
waiting() { belay 2 lv status vg/one --json | jq -e '.lvs[0].waiters[0].node == 3'; }
until_true() { for ((i = 0; i < 300; i++)); do "$@" >/dev/null && return 0; sleep 0.1; done; return 1; }
check "status shows that it waits" until_true waiting
check "node 2 gives it up" does 2 deactivate vg/one
wait "$waiter"
is "$(jq -r .op_result "$BED_DIR/waited.json")" 0 "then node 3 has it"
is "$(locks one)" "3 ex" "and nobody else"

# ---- what cannot be ----

check "an LV that is not there" fails 1 activate vg/none
check "is called so" like "$(said '.nodes[0].text')" "no such LV"
check "a VG that is not there" fails 1 activate none/none
check "is called so" like "$(said '.nodes[0].text')" "no such VG"
check "a node that is not there" fails 1 activate vg/one --on n9
check "is called so" like "$(said '.text')" "no such node"
belay 1 lv activate vg --on n1 --all >/dev/null 2>&1
is $? 2 "wrong usage"

# ---- an LV that several nodes have grows ----

# lvm says it itself if it was told that the others could not be refreshed.
grow() { lvm 1 lvextend --lockopt shupdate -L+4M vg/two >"$BED_DIR/grow" && ! grep -q Manual "$BED_DIR/grow"; }
check "all nodes have an LV" does 1 activate vg/two --all
check "it grows, and the others are told" grow
check "the belay-lvmlockd of one of them ends" bed stop belay-lvmlockd 3
refuse "then it is told that it was not refreshed everywhere" grow
check "and where not" grep -q "but n3, which has it locked, has no belay-lvmlockd" \
	"$(bed files 1)/log/belay-lvmlockd.out"
check "it comes back" bed start belay-lvmlockd 3
back() { lv 1 status vg/two && [ "$(locks two)" = "1 sh 2 sh 3 sh" ]; }
check "and knows what it had" until_true back
check "it grows again, and all are told" grow

# ---- a node goes ----

check "node 3 dies" bed kill-node 3
check "the others notice" bed wait-quorate 2 1 2
check "its lock stays" fails 1 activate vg/one
gone() { lv 1 status vg/one; [ "$(said '.lvs[0].elsewhere[0].node')" = 3 ]; }
check "and is shown" until_true gone
check "what is asked of it is told to fail" fails 1 deactivate vg/one --on n3
check "all are those that are there" does 1 activate vg/two --all
is "$(said '[.absent[].node] | tostring')" "[3]" "it is told who is not"
belay 1 fence-ack n3 --yes >/dev/null
check "it is fenced: node 1 gets the LV" does 1 activate vg/one
is "$(locks one)" "1 ex" "alone"

check "belay-lvmlockd of node 2 ends" bed stop belay-lvmlockd 2
belay 2 lv status >"$BED_DIR/out" 2>&1
is $? 3 "belay lv says that it is not there"
check "and how to start it" grep -q "systemctl start belay-lvmlockd" "$BED_DIR/out"
done_testing
