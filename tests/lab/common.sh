# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# For the tests on virtual machines: a lab of this test's own, gone at its end,
# whose nodes run the belay that was just built.
: "${top_srcdir:=.}" "${top_builddir:=.}"
# shellcheck source=tests/tap.sh
. "$top_srcdir/tests/tap.sh"
patience=90	# the processors of the nodes may be emulated

build=$(readlink -f "$top_builddir")
export LAB_CACHE=${LAB_CACHE:-$build/tests/lab/cache} LAB_AGENT=$build/tests/lab/agent
LAB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/belay-lab.XXXXXX") || bail_out "no temporary directory"
export LAB_DIR
lab() { "$top_srcdir/tests/lab/lab" "$@"; }
installed=$build/tests/lab/root	# make lab-root

clean_up() {
	local node
	# The logs of a failed test are what is needed to understand it.
	if [ "$tap_failed" -gt 0 ]; then
		for node in 1 2 3; do
			lab run -t 10 "$node" 'cd /var/log; tail -n 25 belay*.out
				grep -E "TOTEM|Members" corosync.log | tail -n 5; dmesg | tail -n 5
				dmsetup info -c; dmsetup table; lvmlockctl -i' 2>&1 | sed "s/^/# n$node: /"
		done
	fi
	lab down
	rm -rf "$LAB_DIR"
}
trap clean_up EXIT
trap 'exit 1' TERM INT HUP

# on NODE COMMAND...: a line of bash, on that node, which may take some time.
on() { lab run -t "$patience" "$@"; }

# nodes_up N: or the test ends, skipped if this host cannot have them.
nodes_up() {
	local why status
	why=$(lab up "$1" 2>&1 >/dev/null)
	status=$?
	[ "$status" -ne 77 ] || skip_all "$(tail -n 2 <<<"$why" | head -n 1)"
	check "$1 nodes come up" came_up "$status" "$why" || bail_out "no lab"
}
came_up() { [ "$1" -eq 0 ] || { echo "$2"; return 1; }; }

# What was built, with the libraries of this host that it needs: the node has no others.
install_belay() {
	local node libraries pids=() pid
	[ -d "$installed" ] || { echo "nothing in $installed: make lab-root"; return 1; }
	mapfile -t libraries < <(find "$installed" -type f -perm -u+x -print0 |
		LD_LIBRARY_PATH=$(find "$installed" -name 'libbelay.so.*' -printf '%h\n' -quit) \
			xargs -0 ldd 2>/dev/null |
		awk -v mine="$installed/" '$2 == "=>" && $3 ~ /^\// && index($3, mine) != 1 { print $3 }' | sort -u)
	tar -C "$installed" --exclude=man --exclude=doc --exclude=include -cf "$LAB_DIR/belay.tar" . &&
		tar -C / --transform='s,^lib/,usr/lib/,' -h -rf "$LAB_DIR/belay.tar" "${libraries[@]#/}" || return 1
	for node; do
		lab run -i "$node" 'tar -x --keep-directory-symlink -C / && ldconfig' <"$LAB_DIR/belay.tar" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || return 1; done
}

corosync_conf() { # N
	local i
	cat <<-E
		totem {
		  version: 2
		  cluster_name: lab
		  transport: udpu
		  crypto_cipher: none
		  crypto_hash: none
		  token: 5000
		  token_coefficient: 0
		}
		quorum {
		  provider: corosync_votequorum
		  two_node: $(($1 == 2))
		  wait_for_all: 0
		}
		logging {
		  to_stderr: no
		  to_syslog: no
		  to_logfile: yes
		  logfile: /var/log/corosync.log
		  timestamp: hires
		}
		nodelist {
	E
	for ((i = 1; i <= $1; i++)); do
		printf '  node {\n    nodeid: %d\n    name: n%d\n    ring0_addr: 10.77.0.%d\n  }\n' "$i" "$i" "$i"
	done
	echo '}'
}

on_quorum_loss=none	# of [lvm], from the next configure on
belay_conf() {
	printf '[belayd]\nlog_target = stderr\nlog_level = info\n[lvm]\non_quorum_loss = %s\n' "$on_quorum_loss"
}

# configure NODE...: corosync for three nodes, belay, and lvm, which here has no udev.
configure() {
	local node
	for node; do
		corosync_conf 3 | lab run -i "$node" 'cat >/etc/corosync/corosync.conf' &&
			belay_conf | lab run -i "$node" 'cat >/etc/belay/belay.conf' &&
			lab run -i "$node" 'cat >/etc/lvm/lvm.conf' <<-E || return 1
				global { use_lvmlockd=1 }
				devices {
					use_devicesfile=0
					obtain_device_list_from_udev=0
					external_device_info_source="none"
					filter=["a|^/dev/sda$|", "r|.*|"]
				}
				activation { udev_sync=0 udev_rules=0 monitoring=0 }
				backup { backup=0 archive=0 }
			E
	done
}

# until_on NODE WHAT COMMAND: until a line of bash succeeds there; asked on the node
# itself, for the way there is long.
until_on() {
	on "$1" "until { $3; } >/dev/null 2>&1; do sleep 0.1; done" && return
	echo "node $1, after $patience s still not: $2"
	return 1
}

command_line() {
	case $1 in
	corosync) echo corosync -f ;;
	belayd) echo belayd --foreground ;;
	belay-lvmlockd) echo belay-lvmlockd --foreground ;;
	*) return 1 ;;
	esac
}

# start PROGRAM NODE...; what it says goes to /var/log/PROGRAM.out
start() {
	local program=$1 node line
	line=$(command_line "$program") || return 1
	for node in "${@:2}"; do
		on "$node" "setsid bash -c '$line; echo status \$?' </dev/null >>/var/log/$program.out 2>&1 &" &&
			until_on "$node" "$program runs" "pgrep -x $program" || return 1
	done
}
signal() { # SIGNAL PROGRAM NODE...
	local node
	for node in "${@:3}"; do on "$node" "pkill -$1 -x $2" || return 1; done
}
wait_gone() { # PROGRAM NODE...
	local node
	for node in "${@:2}"; do until_on "$node" "$1 gone" "! pgrep -x $1" || return 1; done
}
stop() { signal TERM "$@" && wait_gone "$@"; }

quorum_is() { # "VOTES YES|NO" as bash
	# shellcheck disable=SC2016
	printf '[ "$(corosync-quorumtool -s | awk '\''%s'\'')" = "%s" ]' \
		'/^Total votes:/ { v = $3 } /^Quorate:/ { q = $2 } END { print v, q }' "$1"
}
wait_quorate() { # VOTES NODE...
	local node
	for node in "${@:2}"; do until_on "$node" "quorate with $1 votes" "$(quorum_is "$1 Yes")" || return 1; done
}
wait_inquorate() {
	local node
	for node; do until_on "$node" "without quorum" "$(quorum_is "1 No")" || return 1; done
}
wait_synced() {
	local node
	for node; do
		until_on "$node" "belayd synced" "belay status --json | jq -e '.synced and (.frozen | not)'" || return 1
	done
}

# belay NODE ARGUMENT...: the command, run on that node.
belay() { on "$1" belay "${@:2}"; }

belay_fails() { belay "$@"; [ $? -eq 1 ]; }	# which is another status than that of a wrong option

# serve NODE...: all that belay needs, on nodes that have just booted.
serve() {
	install_belay "$@" && configure "$@" && start corosync "$@"
}

# cluster: three nodes that serve.
cluster() {
	serve 1 2 3 && wait_quorate 3 1 2 3 && start belayd 1 2 3 && wait_synced 1 2 3
}

# serve_volumes NODE...: belay-lvmlockd on nodes where belayd serves.
serve_volumes() {
	local node
	start belay-lvmlockd "$@" || return 1
	for node; do until_on "$node" "belay-lvmlockd serves" "lvmlockctl -i" || return 1; done
}

# volumes: a cluster, and a VG "vg" of its disk, which all nodes have started.
volumes() {
	cluster && serve_volumes 1 2 3 &&
		on 1 vgcreate --shared vg /dev/sda &&
		on 2 vgchange --lockstart vg && on 3 vgchange --lockstart vg
}

# new_lv NODE NAME MB
new_lv() { on "$1" "lvcreate -an -Zn -Wn -y -L $3 -n $2 vg"; }

# What device-mapper has of an LV: "none", or its size in MB and the targets it is made of.
device() { # NODE NAME
	# shellcheck disable=SC2016
	on "$1" "dmsetup table vg-$2 2>/dev/null" |
		awk '{ n += $2; if (!seen[$3]++) t = t " " $3 } END { if (n) print n / 2048 t; else print "none" }'
}
devices() { echo "$(device 1 "$1"), $(device 2 "$1"), $(device 3 "$1")"; }

# locked_elsewhere NODE COMMAND...: lvm says so.
locked_elsewhere() {
	local said
	said=$(on "$@" 2>&1)
	[ $? -eq 5 ] && grep -q "locked by other host" <<<"$said" || { echo "$said"; return 1; }
}
