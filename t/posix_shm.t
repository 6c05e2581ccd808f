#!/bin/bash
# POSIX shared memory: files of a tmpfs, whose contents are in the image.
. "$(dirname "$0")/lib.sh"

cycle posix_shm
RESTART_FLAGS=--namespace
scenario "posix_shm: restarted twice in a namespace" twice "$victim/posix_shm"
RESTART_FLAGS=

# The files of the victim at $sup, which end with it in any case.
files() {
	echo "/dev/shm/trecr-victim-$1" "/dev/shm/sem.trecr-victim-$1-s" "/dev/shm/trecr-victim-$1-new"
}
mine=
trap 'rm -f $mine; cd /; rm -rf "$scratch"' EXIT

# begin NAME [ARG...]: a checkpoint of a victim that has been ended.
begin() {
	arena "$1"
	shift
	launch "$victim/posix_shm" "$@" && mine=$(files "$(program_of "$sup")")
}

begin elsewhere && freeze_away
# shellcheck disable=SC2086
ok "the files are there still" test -e ${mine%% *}
# shellcheck disable=SC2086
rm -f $mine
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "on a machine that does not have them they are made again" || explain
sweep >/dev/null

begin went_on spoil && checkpoint
kill -USR1 "$sup"
await -t 60 -p "$sup" out spoilt >/dev/null
sweep >/dev/null
touch brought-back
restart_here && finish && [ "$status" = 0 ] && [ "$(sed -n 2p out)" = ok ]
result $? "what the program has done to them after the checkpoint is undone" || explain
sweep >/dev/null

begin in_use && checkpoint
first=$sup
timeout -k 1 60 trecr-restart --force --namespace ck </dev/null >/dev/null 2>restart.err
is $? 125 "while the program runs on, a second one is refused"
like "$(cat restart.err)" "/dev/shm/.*trecr-victim-.*, shared memory of the program, is in use" \
	"by name"
sup=$first
finish && [ "$status" = 0 ] && said_ok
result $? "and the first has not noticed" || explain
sweep >/dev/null

begin another && freeze_away
# shellcheck disable=SC2086
rm -f $mine && mkdir ${mine%% *}
timeout -k 1 60 trecr-restart ck </dev/null >/dev/null 2>restart.err
is $? 125 "something else with a file's name is left alone"
like "$(cat restart.err)" "cannot put back /dev/shm/trecr-victim-" "and named"
# shellcheck disable=SC2086
rmdir ${mine%% *}

# A restart that fails leaves none behind.
last=$(ls ck/ckpt-000001 | grep -v job | sort -n | tail -n 1)
printf 'broken' | dd of="ck/ckpt-000001/$last" bs=1 seek=4200 conv=notrunc 2>/dev/null
timeout -k 1 60 trecr-restart ck </dev/null >/dev/null 2>restart.err
is $? 125 "a damaged image is not brought back"
# shellcheck disable=SC2086
not_ok "and no file is left of it" test -e ${mine%% *}

# Nor does it remove what somebody else has put in its file's place meanwhile: the moment is not
# always met.
theirs() {
	until [ -e "$1" ] || [ -e late ]; do :; done
	[ -e late ] || { echo theirs >new && mv -T new "$1" && : >replaced; }
}
for ((i = 0; i < 20; i++)); do
	# shellcheck disable=SC2086
	rm -f late $mine
	theirs "${mine%% *}" 2>>err &
	timeout -k 1 60 trecr-restart ck </dev/null >/dev/null 2>restart.err
	: >late
	wait $!
	[ ! -e replaced ] || break
done
if [ -e replaced ]; then
	is "$(cat "${mine%% *}")" theirs "nor is another's that has taken its name"
else
	skip "nor is another's that has taken its name" "none came in time"
fi
# shellcheck disable=SC2086
rm -f $mine
done_testing
