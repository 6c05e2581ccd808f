#!/bin/bash
# Restarts in a pid namespace, as every ordinary user gets them: the same promises.
. "$(dirname "$0")/lib.sh"

not_ok "trecr-restart --namespace needs a directory" quiet trecr-restart --namespace
RESTART_FLAGS=--namespace
for v in program anon threads raw_clone robust rseq dispositions pending posix_timers \
	file_offsets pipes process_files fd_owner process sched credentials memfd; do
	cycle $v
done

arena outside
launch "$victim/idle" catch && freeze_away
restart_here
inside=$(program_of "$sup")
ok "the program can be named from outside too" quiet trecr-ckpt "$inside" || explain
kill -USR2 "$sup"
ok "signals are passed on into the namespace" quiet await -t 60 -p "$sup" out '^signal 12$'
kill -KILL "$inside"
await -t 60 -p "$sup" && wait "$sup" 2>/dev/null
is $? 137 "the status of a program in a namespace"
leaves_nothing "its init is gone with it"
sweep >/dev/null
arena status
launch "$BASH" -c "echo ready; $wait_go; exit 7" && freeze_away
restart_here
: >go
await -t 60 -p "$sup" && wait "$sup" 2>/dev/null
is $? 7 "and of one that ends by itself"
sweep >/dev/null
RESTART_FLAGS=

# An id that nothing shows, so that only the attempt to get it tells.
taken() { # VICTIM NAME SED [COMMAND]: an id out of what trecr-inspect says; what else is to be so
	arena "$1"
	local id name="$2 that was free when the restart began"
	launch "$victim/$1" && freeze_away
	id=$(trecr-inspect --threads ck | sed -n "$3" | head -n 1 | tr -d ' ')
	hold-id "$id" >held 2>held.err
	case $? in
	77) skip "$name" "choosing ids takes a capability" && return ;;
	esac
	step="holding id '$id'"
	await -t 60 held '^held$' >/dev/null &&
		step=restart && restart_here && step="the notice" &&
		grep -q 'id was taken meanwhile' restart.err &&
		step="${4:-}" && ${4:-} &&
		step="its own checks" && finish && [ "$status" = 0 ] && said_ok
	result $? "$name" || {
		diag "failed at: $step"
		explain
	}
	sweep >/dev/null
}
taken threads "a thread's id" '4s/^ *\([0-9]*\) .*/\1/p'
taken tree_family "a process's id" '1d;s/^process //p'
# Next it could be one of those.
has_own_ipc() {
	[ "$(readlink "/proc/$(program_of "$sup")/ns/ipc")" != "$(readlink /proc/self/ns/ipc)" ]
}
taken sysv "a process's id of a program with System V objects" '1d;s/^process //p' has_own_ipc

# The root directory of a chroot is nothing that is mounted. What is below it here is mounted in a
# namespace only: outside, the scratch directory is removed with all that it holds.
# /tmp has the supervisor's socket.
chrooted() {
	local place
	[ "$(readlink /proc/self/ns/mnt)" != "$outside" ] || return 1
	if [ -n "${ROOT_IS_MOUNTED:-}" ]; then
		mkdir -p root && mount --bind root root || return 1
	fi
	for place in /usr /lib* /bin /etc /proc /dev /tmp "${TMPDIR:-/tmp}" "$build" "$top"; do
		mkdir -p "root$place" && mount --rbind "$place" "root$place" || return 1
	done
	# shellcheck disable=SC2016 # for the other shell
	export RESTART_AS=${RESTART_AS:-}
	exec chroot root "$BASH" -c 'cd "$1" && exec $RESTART_AS trecr-restart --namespace --pidfile pidfile ck' - "$PWD"
}
restart_in_chroot() {
	rm -f pidfile
	unshare --mount --propagation=private "$BASH" -c chrooted </dev/null >>out 2>>restart.err &
	sup=$!
	await -t 60 -p $sup pidfile '^[0-9]+$' >/dev/null 2>>await.err
}
# /proc shows all paths in that namespace with the directory that is the root of the chroot.
twice_in_chroot() {
	local mounts_before outside
	mounts_before=$(cat /proc/self/mountinfo)
	outside=$(readlink /proc/self/ns/mnt)
	export -f chrooted
	export build top outside
	freeze_away && step="first restart" &&
		restart_in_chroot && step="second checkpoint" &&
		freeze_away && step="second restart" &&
		restart_in_chroot && step="running on" &&
		finish && step="its own checks" &&
		[ "$status" = 0 ] && said_ok && step="mounts outside" &&
		[ "$mounts_before" = "$(cat /proc/self/mountinfo)" ]
}
# An ordinary user needs a user namespace for it, as root without this capability does.
refused_in_chroot() {
	local outside
	outside=$(readlink /proc/self/ns/mnt)
	export -f chrooted
	export build top outside
	freeze_away && step="the refusal" || return
	for ROOT_IS_MOUNTED in '' yes; do
		export ROOT_IS_MOUNTED
		: >restart.err
		RESTART_AS='setpriv --bounding-set=-sys_admin' restart_in_chroot && return 1
		grep -q 'cannot create a new user, .*a chroot[:,].*restart as root' restart.err || return
	done
	sweep 60
}
if ! am_root; then
	skip "in a chroot an ordinary user's restart is refused by name" "this takes root"
elif have setpriv && unshare --mount true 2>/dev/null; then
	scenario "in a chroot an ordinary user's restart is refused by name" refused_in_chroot "$victim/idle"
else
	skip "in a chroot an ordinary user's restart is refused by name" "unshare makes no mount namespace here"
fi
for v in idle process file_private unix_names inotify jail; do
	if ! am_root; then
		skip "$v: twice in a chroot" "this takes root"
	elif unshare --mount true 2>/dev/null; then
		scenario "$v: twice in a chroot" twice_in_chroot "$victim/$v"
	else
		skip "$v: twice in a chroot" "unshare makes no mount namespace here"
	fi
done
# In a user namespace that was made without privilege, not even its root may set groups.
arena no_groups
in_user_namespace() {
	launch "$victim/idle" && once
}
if unshare --user --map-root-user true 2>/dev/null; then
	export -f in_user_namespace
	unshare --user --map-root-user "$BASH" -c '. "$0" && cd "$1" && in_user_namespace' \
		"$top/t/lib.sh" "$PWD" 2>>err
	result $? "a user namespace without groups: restarted in it" || explain
else
	skip "a user namespace without groups: restarted in it" "no user namespaces"
fi

# Supervisors with one id, in two pid namespaces that share /tmp, as containers may.
arena same_id
in_namespace() { # NUMBER
	unshare $user --fork --pid --mount-proc "$BASH" -c '
		trecr-run -d ck.$1 -- "$2" </dev/null >out.$1 2>err.$1 &
		await -t 60 -p $! out.$1 "^ready" >/dev/null && echo $! >id.$1 && : >up.$1
		await -t 60 -p $! -e up.$((3 - $1)) && trecr-ckpt $! >path.$1 2>>err.$1
		echo $? >status.$1
		await -t 60 -p $! -e status.$((3 - $1))
		kill -USR1 $! && wait $!' - "$1" "$victim/idle"
}
user=--map-current-user
! am_root || user=
if can_try; then
	in_namespace 1 2>>await.err &
	in_namespace 2 2>>await.err &
	wait
	is "$(cat id.1)" "$(cat id.2)" "two supervisors have one id"
	is "$(cat path.1 path.2)" "$PWD/ck.1/ckpt-000001
$PWD/ck.2/ckpt-000001" "and trecr-ckpt reaches that of its own namespace" || explain err.1 err.2
	is "$(tail -qn 1 out.1 out.2)" "ok
ok" "both programs run on to their ends"

	# Between bind(2) and listen(2) a socket looks, to another supervisor that starts then, as if
	# nobody listened at it any more, where the first one's id is nobody's.
	arena begun
	is_bound() { # PID: has a socket with a name and no listener
		local inode
		for inode in $(readlink /proc/"$1"/fd/* | sed -n 's/^socket:.\([0-9]*\).$/\1/p'); do
			awk "\$7 == $inode && \$4 == \"00000000\" && NF > 7 { yes = 1 } END { exit !yes }" \
				/proc/net/unix && return
		done
		return 1
	}
	looks_for_sockets() { # PID of unshare
		local child
		child=$(cat "/proc/$1/task/$1/children") && [ -n "$child" ] &&
			readlink "/proc/${child% }/fd/"* | grep -qx "/tmp/trecr-$(id -u)"
	}
	bound=no
	for n in {1..20}; do
		faults fault socket "$n" hold
		LD_PRELOAD=$build/t/fault.so TRECR_FAULT=$PWD/fault \
			trecr-run -d ck -- "$victim/idle" </dev/null >out 2>err &
		sup=$!
		until faults fault fired || ! kill -0 $sup; do await -t 0.02 -p $sup; done 2>>await.err
		is_bound $sup && bound=yes && break
		kill -KILL $sup
		wait $sup 2>/dev/null
	done
	is $bound yes "a supervisor is held when its socket has a name"
	unshare $user --fork --kill-child --pid --mount-proc \
		trecr-run -d ck.2 -- "$victim/idle" </dev/null >out.2 2>err.2 &
	second=$!
	for _ in {1..1000}; do
		grep -q ready out.2 || looks_for_sockets $second || await -t 0.02 -p $second && break
	done 2>/dev/null
	faults fault off
	await -t 60 -p $sup out '^ready' >/dev/null 2>>await.err
	ok "one that starts meanwhile leaves it its socket" checkpoint || explain err.2
	sweep >/dev/null

	# From outside its socket has another name.
	arena from_outside
	unshare $user --fork --kill-child --pid --mount-proc trecr-run -d ck -- "$victim/idle" </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready' >/dev/null 2>await.err
	read -r inside <"/proc/$sup/task/$sup/children"
	trecr-ckpt "$inside" 2>ckpt.err
	like "$(cat ckpt.err)" "is in another pid namespace.*run trecr-ckpt there, where it is process 1$" \
		"trecr-ckpt from outside is told where to run" || explain
	kill -KILL $sup
	sweep >/dev/null
else
	skip "supervisors with one id" "no pid namespaces"
	skip "trecr-ckpt from outside is told where to run" "no pid namespaces"
fi

done_testing
