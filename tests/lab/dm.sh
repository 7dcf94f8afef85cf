#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What belay-lvmlockd does to device-mapper without quorum, by itself, on a real kernel:
# suspend and resume, the error target and back, what hangs, what is another by now.
set -u
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/lab/common.sh
. "$top_srcdir/tests/lab/common.sh"

put_probe() {
	install_belay 1 && configure 1 && on 1 "sed -i s/use_lvmlockd=1/use_lvmlockd=0/ /etc/lvm/lvm.conf" &&
		lab run -i 1 'cat >/tmp/dm_probe && chmod +x /tmp/dm_probe' <"$build/tests/lab/dm_probe"
}
probe() { on 1 /tmp/dm_probe "$@"; }
# probes WHAT WANT NAME ACTION...
probes() { is "$(probe "${@:3}" 2>&1 | tr '\n' ';')" "$2" "$1"; }
suspended() { [ "$(on 1 "dmsetup info -c --noheadings -o suspended $1")" = "$2" ]; }
# writer DEVICE: one direct write in the background; its exit status goes to a file.
writer() {
	on 1 "rm -f /tmp/exit; { dd if=/dev/zero of=/dev/mapper/$1 bs=4k count=1 oflag=direct conv=nocreat,notrunc
		echo \$? >/tmp/exit; } </dev/null >/tmp/dd.out 2>&1 & until pgrep -x dd || [ -e /tmp/exit ]; do :; done"
}
# There is no event for what does not happen.
writer_waits() { on 1 'sleep 1; pgrep -x dd && [ ! -e /tmp/exit ]'; }
writer_ended() { # STATUS
	on 1 "until [ -s /tmp/exit ]; do sleep 0.1; done; grep -qx $1 /tmp/exit"
}
lvm_uuid() { printf 'LVM-%s%s' "$(printf 'v%.0s' {1..32})" "$(printf "$1%.0s" {1..32})"; }

nodes_up 1
check "the node has the probe" put_probe || bail_out "no probe"
check "a VG of its own" on 1 vgcreate vg /dev/sda
check "an LV" on 1 lvcreate -Wn -Zn -y -L 16 -n a vg
check "an LV with a snapshot" on 1 "lvcreate -Wn -Zn -y -L 16 -n o vg && lvcreate -y -s -L 8 -n s vg/o"
check "a mirrored LV" on 1 lvcreate -y -Wn -Zn --type mirror -m 1 --mirrorlog core --alloc anywhere --nosync \
	-L 16 -n m vg
check "a thin LV" on 1 "lvcreate -y -Wn --config 'global { thin_check_executable=\"\" }' --type thin -L 32 -V 64 \
	-n t --thinpool p vg"
volumes_are() {
	local want='vg-a 0 top linear 16
vg-m 0 top mirror 16
vg-m_mimage_0 1 part linear 16
vg-m_mimage_1 1 part linear 16
vg-o 0 top snapshot-origin 16
vg-o-real 2 part linear 16
vg-p 0 part linear 32
vg-p-tpool 1 part thin-pool 32
vg-p_tdata 2 part linear 32
vg-p_tmeta 2 part linear 4
vg-s 1 top snapshot 16
vg-s-cow 2 part linear 8
vg-t 0 top thin 64'
	diff <(sort <<<"$want") <(probe list | sort)
}
check "LVs and their parts are told from each other" volumes_are

# suspend and resume
probes "an LV is suspended, once" "suspend done;suspend EALREADY;" vg-a suspend suspend
check "it is" suspended vg-a Suspended
check "a program writes to it" writer vg-a
check "and waits" writer_waits
probes "it is resumed, once" "resume done;resume EALREADY;" vg-a resume resume
check "and the program goes on" writer_ended 0
for lv in o s m t; do
	probes "LV $lv can be suspended, too" "suspend done;resume done;" "vg-$lv" suspend resume
done
probes "what is not suspended cannot be made fail" "fail EALREADY;" vg-a fail
check "lvm is about to change it" on 1 "dmsetup suspend vg-a && dmsetup table vg-a | dmsetup load vg-a"
probes "a table that it has loaded is left to it" "resume EBUSY;error EALREADY;" vg-a resume error
check "it is done with it" on 1 "dmsetup clear vg-a && dmsetup resume vg-a"

# the error target
before=$(on 1 "dmsetup table vg-a")
check "the LV has content" on 1 "head -c 4096 /dev/zero | tr '\\0' x | dd of=/dev/vg/a bs=4k oflag=direct"
check "somebody has it open" on 1 "sleep 1000 </dev/vg/a >/dev/null 2>&1 &"
probes "the error target takes its place, once" "error done;error ESTALE;" vg-a error error
is "$(on 1 'dmsetup table vg-a')" "0 32768 error " "all of it"
is "$(on 1 'blockdev --getsize64 /dev/vg/a')" "$((16 << 20))" "it is as large as before"
check "a program writes to it" writer vg-a
check "and fails" writer_ended 1
probes "it is not put back by who does not know what it was" "restore EOPNOTSUPP;" vg-a restore
check "lvm makes it work again" on 1 "lvchange --refresh vg/a"
is "$(on 1 'dmsetup table vg-a')" "$before" "as it was"
probes "and so do we, who know it" "error done;restore done;restore EALREADY;" vg-a error restore restore
is "$(on 1 'dmsetup table vg-a')" "$before" "as it was"
is "$(on 1 "dd if=/dev/vg/a bs=4k count=1 iflag=direct status=none | tr -d x | wc -c")" 0 "with its content"
for lv in o s; do
	probes "LV $lv can be made fail, and work again" "error done;restore done;" "vg-$lv" error restore
done
for lv in m t; do
	probes "LV $lv can be made fail, but has a state" "error done;restore EOPNOTSUPP;" "vg-$lv" error restore
	check "lvm makes it work again" on 1 "lvchange --refresh vg/$lv && ! dmsetup table vg-$lv | grep ' error '"
done
check "a read-only LV" on 1 "lvcreate -Wn -Zn -y -L 8 -n q vg && lvchange -pr vg/q"
probes "is made fail and put back" "error done;restore done;" vg-q error restore
is "$(on 1 'blockdev --getro /dev/vg/q')" 1 "and stays read-only"

probes "an LV is suspended" "suspend done;" vg-a suspend
check "a program writes to it" writer vg-a
check "and waits" writer_waits
probes "what waits in it can be made fail" "fail done;" vg-a fail
check "and then the program does" writer_ended 1
check "lvm makes the LV work again" on 1 "lvchange --refresh vg/a && dmsetup table vg-a | grep linear"

# another device with the same number
check "a device on a loop device" on 1 "modprobe loop; truncate -s 8M /tmp/loop && losetup /dev/loop0 /tmp/loop &&
	dmsetup create loopy --uuid $(lvm_uuid l) --table '0 16384 linear 7:0 0'"
probes "its table can be put back" "error done;restore done;" loopy error restore
check "it is made fail; the loop device goes, and another comes by its number" on 1 \
	"mkfifo /tmp/go; /tmp/dm_probe loopy error wait restore >/tmp/probe.out 2>&1 </tmp/go & exec 9>/tmp/go
	until grep -q done /tmp/probe.out; do sleep 0.1; done
	losetup -d /dev/loop0 && losetup /dev/loop0 /tmp/loop && echo go >&9 && wait \$!"
is "$(on 1 "tail -n 1 /tmp/probe.out")" "restore ESTALE" "then its table is not put back"
check "the device is removed" on 1 "dmsetup remove loopy"

# what hangs
check "a device, and one on it" on 1 "dmsetup create low --table '0 16384 linear 7:0 0' &&
	low=\$(dmsetup info -c --noheadings --separator : -o major,minor low) &&
	dmsetup create high --uuid $(lvm_uuid h) --table \"0 16384 linear \$low 0\" && dmsetup mknodes high"
check "the lower one does not answer" on 1 "dmsetup suspend --noflush --nolockfs low"
check "a program writes to the upper one" writer high
check "and waits" writer_waits
said=$(probe high suspend interrupt 2>&1)
is "$(head -n 1 <<<"$said")" "suspend EINPROGRESS dm_wait_for_completion" \
	"a suspension waits for it, and it is told where"
is "$(tail -n 1 <<<"$said")" "suspend EINTR" "it can be broken off"
check "then it is not suspended" suspended high Active
check "another suspension begins" on 1 "/tmp/dm_probe high suspend end >/tmp/probe.out 2>&1 </dev/null &
	until grep -q EINPROGRESS /tmp/probe.out; do sleep 0.1; done"
check "the lower one answers" on 1 "dmsetup resume low"
check "what was under way ends" writer_ended 0
check "and with it the suspension" on 1 'until tail -n 1 /tmp/probe.out | grep -x "suspend done"; do sleep 0.1; done'
check "then it is suspended" suspended high Suspended
check "all is removed" on 1 "dmsetup resume high && dmsetup remove high && dmsetup remove low"
is "$(probe high suspend; echo $?)" 1 "what is not there is not found"
done_testing
