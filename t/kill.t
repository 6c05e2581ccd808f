#!/bin/bash
# SIGKILL at any moment of a checkpoint or restart: of the supervisor, of trecr-ckpt, of the
# program. The others live and are unharmed, and the checkpoint before stays whole.
. "$(dirname "$0")/lib.sh"

rounds=${KILL_ROUNDS:-12}
memory=96
# A moment of what takes $1 ms, or a little more: to spread the kills, not to wait for something.
moment() {
	perl -e 'select undef, undef, undef, rand($ARGV[0] * 1.15) / 1000' "$1"
}
milliseconds() { # COMMAND...: took is how long it takes
	local start=${EPOCHREALTIME/./}
	"$@" >/dev/null 2>&1
	took=$(((${EPOCHREALTIME/./} - start) / 1000 + 1))
}
# Until process $1 has ended by itself; if it does not, it is ended.
ends() {
	await -t 60 -p "$1" 2>/dev/null || {
		kill -KILL "$1"
		return 1
	}
}
untraced() {
	[ "$(sed -n 's/^TracerPid:\t//p' "/proc/$1/status")" = 0 ]
}

# supervisor_dies VICTIM [ARG...]: $rounds times; what went wrong is in bad.
supervisor_dies() {
	bad=
	for ((i = 1; i <= rounds; i++)); do
		rm -rf ck
		launch "$victim/$1" "${@:2}" || { bad+=" start"; break; }
		inside=$(program_of "$sup")
		milliseconds checkpoint
		trecr-ckpt "$sup" >/dev/null 2>&1 &
		request=$!
		moment "$took"
		kill -KILL "$sup"
		wait "$sup" 2>/dev/null
		ends $request || bad+=" $i:trecr-ckpt-hangs"
		wait $request 2>/dev/null
		kill -0 "$inside" 2>/dev/null || bad+=" $i:dead"
		untraced "$inside" || bad+=" $i:traced"
		trecr-inspect --verify ck >/dev/null 2>inspect.err ||
			bad+=" $i:image($(cat inspect.err))"
		kill -USR1 "$inside"
		ends "$inside" || bad+=" $i:hangs"
		said_ok || bad+=" $i:harmed($(tail -n 1 out))"
		sweep 2 >/dev/null
	done
}

arena sockets
supervisor_dies tcp_loopback
[ -n "$skip_reason" ] || is "$bad" "" "$rounds times SIGKILL while TCP connections are looked at"
supervisor_dies unix_rights
is "$bad" "" "$rounds times SIGKILL while messages with descriptors are looked at"

arena supervisor
supervisor_dies idle count $memory
is "$bad" "" "$rounds times SIGKILL to the supervisor during a checkpoint"
printf 'ready\n' >out
restart_here && finish
is "$status" 0 "the checkpoint left behind restarts" || explain
sweep >/dev/null

arena request
bad=
launch "$victim/idle" count $memory
milliseconds checkpoint
for ((i = 1; i <= rounds; i++)); do
	trecr-ckpt "$sup" >/dev/null 2>&1 &
	request=$!
	moment "$took"
	kill -KILL $request 2>/dev/null
	wait $request 2>/dev/null
	kill -0 "$sup" 2>/dev/null || bad+=" $i:supervisor"
done
is "$bad" "" "$rounds times SIGKILL to trecr-ckpt"
checkpoint
is $? 0 "the supervisor takes the next checkpoint" || explain
ok "and leaves nothing unfinished" nothing_unfinished
finish
is "$status" 0 "the program is whole" || explain

# program_dies ROUNDS VICTIM [ARG...]: what went wrong is in bad.
program_dies() {
	bad=
	for ((i = 1; i <= $1; i++)); do
		rm -rf ck
		launch "$victim/$2" "${@:3}" || { bad+=" start"; break; }
		inside=$(program_of "$sup")
		milliseconds checkpoint
		trecr-ckpt "$sup" >answer 2>answer.err &
		request=$!
		moment "$took"
		kill -KILL "$inside"
		ends "$sup" || bad+=" $i:supervisor-hangs"
		wait "$sup" 2>/dev/null
		status=$?
		[ $status = 137 ] || bad+=" $i:status-$status"
		ends $request || bad+=" $i:trecr-ckpt-hangs"
		# Either it came too late, or it says that there is no checkpoint.
		if wait $request 2>/dev/null; then
			[ -f "$(cat answer)/job" ] || bad+=" $i:no-image"
		else
			grep -Eq "$no_more" answer.err || bad+=" $i:$(cat answer.err)"
		fi
		trecr-inspect --verify ck >/dev/null 2>&1 || bad+=" $i:image"
		[ -z "$(find ck -name '*.tmp')" ] || bad+=" $i:leftover"
		sweep 60 >/dev/null || bad+=" $i:left-behind"
	done
}
# The process is gone, or the supervisor is, before the request or behind it.
no_more='was killed|has ended|ended before|no process'

arena program
program_dies "$rounds" idle count $memory
is "$bad" "" "$rounds times SIGKILL to the program during its checkpoint"
# With little memory most of that is done by its threads.
program_dies $((4 * rounds)) threads
is "$bad" "" "$((4 * rounds)) times SIGKILL to a program with many threads"

arena restart
bad=
launch "$victim/idle" count $memory && freeze_away
milliseconds restart_here
kill -KILL "$(program_of "$sup")"
await -p "$sup"
for ((i = 1; i <= rounds; i++)); do
	rm -f pidfile
	trecr-restart --pidfile pidfile ck </dev/null >>out 2>/dev/null &
	sup=$!
	moment "$took"
	kill -KILL "$sup"
	wait "$sup" 2>/dev/null
	# Until it is let go, the program dies with its maker; after, it lives on and is whole.
	# Half of a program is never left.
	nest --list | while read -r pid name; do
		[ "$name" != "(idle)" ] || kill -USR1 "$pid" 2>/dev/null
	done
	sweep 60 >left || bad+=" $i:$(cat left)"
	[ ! -s pidfile ] || [ "$(tail -n 1 out)" = ok ] || bad+=" $i:harmed($(tail -n 1 out))"
	# What is to become the program would run it from its beginning, if it were let go too early.
	[ "$(grep -c ready out)" = 1 ] || bad+=" $i:began-anew"
	printf 'ready\n' >out
	trecr-inspect --verify ck >/dev/null 2>&1 || bad+=" $i:image"
done
is "$bad" "" "$rounds times SIGKILL to trecr-restart"
printf 'ready\n' >out
restart_here && finish
is "$status" 0 "the checkpoint still restarts" || explain
done_testing
