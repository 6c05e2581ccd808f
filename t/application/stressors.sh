#!/bin/bash
# Every stressor of stress-ng that runs here as it is: in mid-run a checkpoint that ends it, a
# restart, and stress-ng must be content (--verify), or the checkpoint is refused.
#
#	make check-stressors [STRESSORS='sem-sysv mprotect sock,--sock-domain,unix ...'] [WORKERS=2]
#		[STRESS_NG=./stress-ng] [LENGTH=5] [RUN_AS=USER]
#
# With RUN_AS=USER, root runs it as that user, apart from others all the same.
#
# Not part of make check: it takes half an hour, and is as hard on the machine as stress-ng is.
TEST_LIMIT=${TEST_LIMIT:-36000}
export TEST_LIMIT
. "$(dirname "$0")/../lib.sh"

# forkheavy and resources fill /tmp, wherever they are told to work, and leave System V and POSIX objects. Root
# gives them a /tmp and objects of their own; an ordinary user cannot without another user namespace, which would
# change what is tried, and leaves them out.
case $build in
/tmp/*) TRECR_APART=${TRECR_APART:-no} ;;
esac
if [ -z "${TRECR_APART:-}" ] && am_root && unshare -m -i true 2>/dev/null; then
	cd / && rm -rf "$scratch"
	# shellcheck disable=SC2016
	TRECR_APART=yes TMPDIR=/tmp exec unshare -m -i -- "$BASH" -c '
		mount -t tmpfs -o size=6g,mode=1777 none /tmp || exit 1
		user=${RUN_AS:-}
		unset RUN_AS
		exec ${user:+setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --} "$BASH" "$0"' \
		"$top/t/application/stressors.sh"
fi
[ -z "${RUN_AS:-}" ] || skip_all "RUN_AS=$RUN_AS: only root, and with TRECR_BUILD outside of /tmp, can run this as somebody else"

have stress-ng || skip_all "no stress-ng (Debian's package stress-ng)"
# Some take whatever memory they get, and all of it is in an image.
ulimit -v $((2 << 20))
# Stressors that fork as much as they can: an ordinary user's only. This script and trecr can still fork then.
ulimit -u 1100

stress() { # NAME[,OPTION...]
	local how
	ulimit -u 1000
	IFS=, read -ra how <<<"$1"
	"${STRESS_NG:-stress-ng}" "--${how[0]}" "${WORKERS:-1}" "${how[@]:1}" --verify \
		--timeout "${LENGTH:-5}" --temp-path . 2>&1
}
export -f stress

# The last complaint of stress-ng, or of trecr.
reason() {
	tail -n 1 "$1" | sed -E 's/^trecr-[a-z]*: //; s/[0-9]{3,}/N/g' | cut -c1-400
}
complaint() {
	grep -E "fail|error" out | tail -n 1 | sed -E 's/^[^]]*\] //' | cut -c1-400
}

# By itself, where it has not ended well.
runs_alone() {
	mkdir alone && (cd alone && timeout -k 1 60 "$BASH" -c "stress $1" >../alone.out)
}

# It runs, and has for a while; most stressors that cannot run here end at once.
begin() {
	trecr-run -d ck -- "$BASH" -c "stress $1" </dev/null >out 2>err &
	sup=$!
	await -t 20 -p $sup out dispatching >/dev/null 2>>await.err || return 1
	! await -t 1.5 -p $sup 2>>await.err
}

# After a checkpoint that was refused it may have ended by now, well.
runs_on() {
	kill -0 "$sup" 2>/dev/null || wait "$sup"
}

bring_back() {
	step=restart
	restart_here || return 1
	step="its end"
	await -t 60 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	[ $status = 0 ]
}

LONG=60 # seconds
# It has ended by itself, as the machine was busy: no finding.
too_short() {
	grep -qE 'has ended$|there is no process' ckpt.err && [ "$LENGTH" -lt "$LONG" ] && runs_on
}

try() { # NAME [SECONDS]
	local name=$1 step=
	local -x LENGTH=${2:-${LENGTH:-5}}
	case ${name%%,*},${TRECR_APART:-no} in
	forkheavy,no | resources,no)
		skip "$name" "it would fill /tmp, and leave objects behind: as root, RUN_AS=$(id -un)"
		return
		;;
	esac
	arena "${name%%,*}" # sockets have paths of this length at most
	if ! begin "$name"; then
		skip "$name" "it does not run here"
	elif ! checkpoint -s; then
		if too_short; then
			sweep >/dev/null
			cd "$scratch" && rm -rf "$arenas.${name%%,*}"
			try "$name" "$LONG"
			return
		elif runs_on && grep -q 'cannot checkpoint' ckpt.err; then
			result 0 "$name: refused: $(reason ckpt.err | sed 's/^cannot checkpoint: //')"
		else
			result 1 "$name: $(reason ckpt.err)"
		fi
	elif bring_back; then
		result 0 "$name"
	elif [ "$step" = "its end" ] && ! runs_alone "$name"; then
		skip "$name" "it does not end well by itself"
	else
		result 1 "$name: $step: ${status:+status $status, }$(reason restart.err) $(complaint)"
	fi
	sweep >/dev/null
	status=
	cd "$scratch" && rm -rf "$arenas.${name%%,*}"
}

# shellcheck disable=SC2086
for name in ${STRESSORS:-$(stress-ng --stressors)}; do
	try "$name"
done
done_testing
all_passed 0
