#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lab itself, with corosync and belayd: what the other tests in it rely on.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/lab/common.sh
. "$top_srcdir/tests/lab/common.sh"

nodes_up 3

# The node's own dollars.
# shellcheck disable=SC2016
is "$(on 2 'echo $((6 * 7)); echo other >&2; exit 3' 2>"$LAB_DIR/err"; echo "$?")" "42
3" "a command runs on a node, with its output and its status"
is "$(cat "$LAB_DIR/err")" "other" "its standard error is apart"
is "$(echo hello | lab run -i 1 'tr a-z A-Z')" "HELLO" "it may have standard input"
lab run -t 1 1 'echo begun; sleep 60' >"$LAB_DIR/out"
is "$? $(cat "$LAB_DIR/out")" "124 begun" "one that takes too long is killed"
refuse "with its children" on 1 pgrep -x sleep
check "what it leaves behind does not keep it" lab run -t 20 1 'sleep 60 &'
is "$(lab all hostname)" "n1: n1
n2: n2
n3: n3" "all nodes at once"
seeds() { lab all 'cat /proc/sys/kernel/random/uuid' | cut -d ' ' -f 2 | sort -u | wc -l; }
is "$(seeds)" 3 "no two nodes draw the same random numbers"

# What is the same for all: the disk.
write_at() { on "$1" "printf %-512s '$3' | dd of=/dev/sda bs=512 seek=$2 oflag=direct status=none"; }
read_at() { on "$1" "dd if=/dev/sda bs=512 skip=$2 count=1 iflag=direct status=none" | tr -d ' '; }
before=$(lab writes 1)
check "node 1 writes to the disk" write_at 1 7 from-one
is "$(read_at 2 7) $(read_at 3 7)" "from-one from-one" "the others read it"
is "$(dd if="$(lab disk)" bs=512 skip=7 count=1 status=none | tr -d ' ')" from-one "so does this host"
is "$(lab writes 1)" "$((${before% *} + 1)) $((${before#* } + 512))" "each write is counted"
is "$(lab writes 2)" "0 0" "for the node that did it"
check "node 3 writes over it" write_at 3 7 from-three
is "$(read_at 1 7)" "from-three" "node 1, which had read and written it, sees that"

check "device-mapper" on 1 'dmsetup create x --table "0 2048 linear /dev/sda 0" && dmsetup remove x'
check "the kernel's cluster file systems and DLM" on 1 modprobe -a dlm gfs2 ocfs2 ocfs2_stack_user

check "corosync, belayd, three nodes that serve" cluster
check "the link of node 3 is cut" lab link 3 off
check "it has no quorum" wait_inquorate 3
check "the others do" wait_quorate 2 1 2
check "and are one cluster" wait_synced 1 2
check "its agent answers" on 3 true
check "the link heals" lab link 3 on
check "all three are together" wait_quorate 3 1 2 3
check "and in sync" wait_synced 1 2 3
check "a lock of node 1" on 1 'belay lock name -x -- belay status'

check "the whole lab is saved" lab save "$LAB_DIR/saved"
refuse "and stands still" lab run 1 true
check "it is restored" lab restore "$LAB_DIR/saved"
check "corosync has not noticed" wait_quorate 3 1 2 3
check "nor has belayd" wait_synced 1 2 3
is "$(read_at 2 7)" "from-three" "the disk is as it was"

check "the power of node 2 fails" lab kill 2
check "the others notice" wait_quorate 2 1 3
refuse "nothing runs on it" lab run 2 true
check "node 2 boots" lab boot 2
refuse "and remembers nothing" on 2 test -e /etc/corosync/corosync.conf
check "corosync starts on it" serve 2
check "all three are together" wait_quorate 3 1 2 3
check "an operator has seen that it was off" belay 1 fence-ack --yes 2
check "belayd starts on it" start belayd 2
check "all three are in sync" wait_synced 1 2 3

mapfile -t pids < <(cat "$LAB_DIR"/n?/pid)
check "the lab goes down" lab down
is "${#pids[@]} $(ps -o stat= -p "$(IFS=,; echo "${pids[*]}")" | grep -vc '^Z')" "3 0" "no process of it is left"
done_testing
