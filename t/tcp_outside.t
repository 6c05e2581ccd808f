#!/bin/bash
# TCP connections to the outside: refused, or (--tcp=reset) broken after a restart.
. "$(dirname "$0")/lib.sh"

# outside NAME HOW MODE: the victim, connected to a server that is not in the tree.
outside() {
	rm -f "$scratch/served"
	serve hello >"$scratch/served" &
	local port
	port=$(await -t 10 -p $! "$scratch/served" '^[0-9]+$') || skip_all "no network"
	server=$!
	[ "$3" != full ] && [ "$3" != half ] || kill -STOP $server
	scenario "$1" "$2" "$victim/tcp_outside" "$port" "$3"
}

ends_well() {
	step="going on"
	finish && step="its own checks" && [ "$status" = 0 ] && said_ok
}

# The server saw an orderly end.
whole() {
	step="what the server says"
	await -t 10 "$scratch/served" '^closed$' >/dev/null
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

asked() {
	checkpoint --tcp=reset || return 1
	step="a checkpoint as it was started"
	checkpoint && return 1
	step="stopping"
	checkpoint --tcp=reset -s && await -t 30 -p "$sup" && step=restart && restart_here &&
		ends_well
}
outside "trecr-ckpt --tcp=reset: for this checkpoint" asked reset
# The connection goes on: nothing was lost, and the server has noticed nothing.
kept() {
	freeze_away && step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && ends_well && whole
}
# What was under way comes over when the server goes on, which has stood still all the time.
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
if am_root; then
	RUN_FLAGS=--tcp=keep
	RESTART_FLAGS=--tcp=keep
	outside "--tcp=keep: goes on after restarts" kept undisturbed
	outside "--tcp=keep: with bytes under way" kept_full full
	outside "--tcp=keep: refused while it is being closed" closing half
	outside "--tcp=keep: undisturbed as long as it runs on" on undisturbed
	RUN_FLAGS=
	RESTART_FLAGS=
else
	privileged() {
		checkpoint --tcp=keep && return 1
		grep -q "TCP_REPAIR" ckpt.err && ends_well && whole
	}
	outside "--tcp=keep: refused without the privilege" privileged undisturbed
fi
trecr-ckpt --tcp=maybe 1 2>err
like "$(cat err)" "tcp.*refuse, reset and keep" "another mode is named"
done_testing
