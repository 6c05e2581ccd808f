#!/bin/bash
# TCP connections to the outside: refused, (--tcp=reset) broken after a restart, or (--tcp=keep)
# kept: whatever the other end does meanwhile, it notices nothing and nothing is lost.
TEST_LIMIT=${TEST_LIMIT:-600}
. "$(dirname "$0")/lib.sh"
. "$top/t/steps.sh"

# Where root keeps connections the packet filter is changed: not the machine's.
apart -n "$@"
[ -z "${TRECR_APART:-}" ] || loopback_up || exit 1
faults "$scratch/fault"

# outside NAME HOW MODE [ADDRESS]: the victim, connected to a server that is not in the tree. What
# that has sent by the end is in the file sent.
outside() {
	rm -f "$scratch/served"
	printf hello >"$scratch/sent"
	tables >"$scratch/tables" 2>/dev/null
	# shellcheck disable=SC2086
	serve ${SERVE_FLAGS:-} hello >>"$scratch/served" &
	local port
	server=$!
	if [ "$3" = server ]; then
		port=${SERVE_FLAGS#-c }
	else
		port=$(await -t 60 -p $server "$scratch/served" '^[0-9]+$') || {
			skip "$1" "no network"
			return
		}
	fi
	[ "$3" != full ] && [ "$3" != half ] || kill -STOP $server
	scenario "$1" "$2" "$victim/tcp_outside" "$port" "$3" "$scratch/sent" "${@:4}"
}

ends_well() {
	step="running on"
	finish && step="its own checks" && [ "$status" = 0 ] && said_ok
}

# The server saw an orderly end.
whole() {
	step="what the server says"
	await -t 60 "$scratch/served" '^closed$' >/dev/null
}

refused_and_on() {
	! grep -q . ckpt.err 2>/dev/null && checkpoint &&
		diag "the checkpoint was not refused" && return 1
	step="the message"
	grep -Eq "descriptor [0-9]+ \(socket:.*it is connected to 127.0.0.1:[0-9]+," ckpt.err &&
		ends_well && whole
}
outside "by default, it is refused with its peer" refused_and_on undisturbed

on() {
	checkpoint && ends_well && whole
}
broken() {
	freeze_away && step="first restart" && restart_detached &&
		step="second checkpoint" && freeze_away && step="second restart" &&
		restart_here && ends_well
}
RUN_FLAGS=--tcp=reset
outside "--tcp=reset: undisturbed as long as it runs on" on undisturbed
outside "--tcp=reset: broken after restarts" broken reset
RUN_FLAGS=

on_request() {
	checkpoint --tcp=reset || return 1
	step="a checkpoint as it was started"
	checkpoint && return 1
	step="stopping"
	checkpoint --tcp=reset -s && await -t 60 -p "$sup" && step=restart && restart_here &&
		ends_well
}
outside "trecr-ckpt --tcp=reset: for this checkpoint" on_request reset
# The connection is as before: nothing was lost, and the server has noticed nothing.
kept() {
	freeze_away && step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && ends_well && whole
}
# Bytes that were under way arrive when the server, which was stopped all the time, resumes.
kept_full() {
	freeze_away && step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here &&
		kill -CONT $server && ends_well && whole
}
closing() {
	checkpoint && return 1
	step="the message"
	grep -q "it is being closed" ckpt.err && kill -CONT $server && ends_well
}

# The server sends "later". Its kernel is not answered: nothing of it is taken, and it is not told
# that there is nobody.
goes_unheard() {
	step="what the server is told${1:+, $1}"
	: >"$scratch/served"
	printf later >>"$scratch/sent"
	kill -USR1 $server
	[ "$(await -t 60 "$scratch/served" '^(heard|unheard|reset)$')" = unheard ]
}

# There is no block of this program's, or one by the name that its image tells.
new_tables() {
	tables | grep -vxFf "$scratch/tables"
}
no_table() {
	step="what is left in the packet filter"
	local i
	for ((i = 0; i < 1200; i++)); do
		[ -z "$(new_tables)" ] && return
		await -t 0.05 -e never 2>/dev/null
	done
	return 1
}
one_table() {
	step="the table of a program that has been ended"
	[ "$(new_tables)" = "$(trecr-inspect ck |
		sed -n 's/^kept  *1 connections.* table inet \(trecr-[^ ]*\).*/\1/p')" ]
}

whole_and_clean() {
	ends_well && whole && no_table
}
twice_unheard() {
	freeze_away && one_table && goes_unheard && step="first restart" && restart_detached &&
		no_table && step="second checkpoint" && freeze_away && goes_unheard again &&
		step="second restart" && restart_here && whole_and_clean
}

# The image of a program that is to be ended is on its way to disk, and does not arrive.
hold_commit() {
	faults "$scratch/fault" sync 1 commit hold
	inside=$(program_of "$sup")
	trecr-ckpt -s "$sup" >answer 2>ckpt.err &
	until faults "$scratch/fault" fired; do
		await -t 0.02 -e never 2>/dev/null
		[ -e "/proc/$sup" ] || return 1
	done
}
written_meanwhile() {
	hold_commit && goes_unheard && faults "$scratch/fault" off && step="its end" &&
		await -t 60 -p "$sup" && one_table && goes_unheard again &&
		step=restart && restart_here && whole_and_clean
}
# How many segments the kernel has taken from all there are; and how often it has sent something of
# the program again, or asked whether there is room for more.
taken() {
	awk '/^Tcp: [0-9]/ { print $11 }' /proc/net/snmp
}
attempts() {
	awk -v to="$(printf ':%04X' "$port")" 'substr($3, 9) == to { print $7, $9 }' \
		/proc/net/tcp
}
another_attempt() {
	step="another attempt to reach the server"
	local before i
	before=$(attempts)
	for ((i = 0; i < 1200; i++)); do
		[ "$(attempts)" = "$before" ] || return 0
		await -t 0.05 -e never 2>/dev/null
	done
	return 1
}
silent_meanwhile() {
	hold_commit || return
	local before
	before=$(taken)
	another_attempt && another_attempt &&
		step="what is said of a program that stands still" &&
		[ "$(taken)" = "$before" ] && faults "$scratch/fault" off && step="its end" &&
		await -t 60 -p "$sup" && step=restart && restart_here &&
		kill -CONT $server && ends_well && whole
}
goes_on_alone() {
	step="its own checks"
	kill -USR1 "$inside" && await -t 60 -p "$inside" && said_ok && whole
}
supervisor_dies() {
	hold_commit && goes_unheard && kill -KILL "$sup" && await -t 60 -p "$sup" &&
		no_table && goes_on_alone
}
# Nothing can be brought to disk: the checkpoint fails after its lock has been made.
checkpoint_fails() {
	faults "$scratch/fault" sync 1 commit
	checkpoint -s && return 1
	faults "$scratch/fault" off && no_table && ends_well && whole
}
# From then on the program is to end with its supervisor, or its connection would be locked.
dies_in_handover() {
	inside=$(program_of "$sup")
	faults "$scratch/fault" message 2 commit kill
	checkpoint -s
	faults "$scratch/fault" off && step="the end of the program" &&
		await -t 60 -p "$inside" && step=restart && restart_detached && no_table
}
# A table that cannot be made any more.
handover_fails() {
	local n
	for n in 1 2 3 4; do
		step="the message, with fault $n"
		faults "$scratch/fault" message $n commit
		checkpoint -s && return 1
		faults "$scratch/fault" off &&
			grep -q "the program resumes: .*nf_tables" ckpt.err && no_table || return
		rm ckpt.err
	done
	ends_well && whole
}

# Now it is told that all has come.
is_heard() {
	step="what the server hears of a program that is back"
	: >"$scratch/served"
	kill -USR2 $server
	[ "$(await -t 60 "$scratch/served" '^(heard|reset)$')" = heard ]
}

# Whatever fails when a program has come back nearly, it can be brought back once more.
after_all_faults() { # CLASS PHASE
	local n=1 met=0
	while :; do
		step="restart with fault $n of class $1 in phase $2"
		faults "$scratch/fault" "$1" $n "$2"
		if ! restart_here; then
			wait "$sup"
			failed=$((failed + 1))
			faults "$scratch/fault" off && one_table &&
				goes_unheard "fault $n of class $1 in phase $2" &&
				step="another one" && restart_here || return
		fi
		is_heard && freeze_away --no-try || return
		faults "$scratch/fault" off || break
		met=$((met + 1))
		further
	done
	note "phase $2, class $1: $met faults"
}
failed_restarts() {
	trecr-restart() {
		exec $preload "$build/trecr-restart" "$@"
	}
	local failed=0
	freeze_away && goes_unheard && after_all_faults trace let-go &&
		after_all_faults message let-go && after_all_faults socket let-go &&
		after_all_faults socket create && step="many failures" && [ $failed -gt 16 ] &&
		step="last restart" && restart_here && whole_and_clean
}

keeps_all() {
	local RUN_FLAGS=--tcp=keep RESTART_FLAGS=--tcp=keep
	outside "--tcp=keep: continues after restarts" kept undisturbed
	outside "--tcp=keep: with bytes under way" kept_full full
	outside "--tcp=keep: refused while it is being closed" closing half
	outside "--tcp=keep: undisturbed as long as it runs on" on undisturbed
	outside "--tcp=keep: what is sent between its end and the restart" twice_unheard \
		undisturbed
	SERVE_FLAGS=-6 outside "--tcp=keep: the same of IPv6" twice_unheard undisturbed ::1
	outside "--tcp=keep: the same of IPv4 written as IPv6" twice_unheard \
		undisturbed ::ffff:127.0.0.1
	SERVE_FLAGS="-c $(free_port)" outside "--tcp=keep: the same of a server" \
		twice_unheard server
	outside "--tcp=keep: the same of one that a thread reads from" twice_unheard read
	outside "--tcp=keep: the same of one in a message" twice_unheard passed
	outside "--tcp=keep: what is sent while it is written" written_meanwhile \
		undisturbed
	[ -z "${TRECR_APART:-}" ] ||
		outside "--tcp=keep: nothing is sent while it is written" silent_meanwhile full
	outside "--tcp=keep: the supervisor is killed meanwhile" supervisor_dies \
		undisturbed
	outside "--tcp=keep: a checkpoint fails" checkpoint_fails undisturbed
	outside "--tcp=keep: the supervisor is killed as it ends the program" \
		dies_in_handover undisturbed
	outside "--tcp=keep: failed restarts" failed_restarts read
	unset -f trecr-restart
	outside "--tcp=keep: it cannot be locked as the program ends" handover_fails undisturbed
}
if am_root && why=$(tables 2>&1); then
	keeps_all
elif am_root; then
	skip "--tcp=keep" "$why"
else
	privileged() {
		checkpoint --tcp=keep && return 1
		grep -q "descriptor [0-9]* .*(nf_tables): this requires CAP_NET_ADMIN" ckpt.err &&
			ends_well && whole
	}
	outside "--tcp=keep: refused without the privilege" privileged undisturbed
fi
trecr-ckpt --tcp=maybe 1 2>err
like "$(cat err)" "tcp.*refuse, reset or keep" "another mode is named"
done_testing
