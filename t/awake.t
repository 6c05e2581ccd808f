#!/bin/bash
# While a checkpoint is written, its supervisor answers, takes signals and further requests, and
# can be told to give the checkpoint up. --rate makes the writing last.
. "$(dirname "$0")/lib.sh"

slowly=--rate=8K # a fraction of what is to be written

# Until the status has a line that matches; it is left in `status`.
await_status() { # PATTERN
	local end=$((SECONDS + 60))
	until status=$(trecr-ckpt --status "$sup" 2>status.err) && grep -qE "$1" <<<"$status"; do
		[ $SECONDS -lt $end ] || { diag "$status $(cat status.err)"; return 1; }
	done
}

arena queue
launch "$victim/idle"
trecr-ckpt --status --watch "$sup" >watched 2>watch.err &
watch=$!
await -t 60 watched '^no checkpoint yet$' >/dev/null
trecr-ckpt $slowly "$sup" >first 2>first.err &
first=$!
ok "the status tells how far a checkpoint is" \
	await_status '^now +writing memory, [0-9.]+ (bytes|[KM]iB) of [0-9.]+ [KM]iB'
await -t 60 watched '^writing memory, ' >/dev/null
like "$(trecr-ckpt --json "$sup")" '"now": \{[^}]*"phase": "writing memory"' "so does JSON"
trecr-ckpt "$sup" >second 2>second.err &
second=$!
ok "another request waits" await_status '^now .*; 1 more requested$'
kill -TERM $first
wait $first
wait $second
is $? 0 "and is answered when the first one's client has gone" || diag "$(cat second.err)"
is "$(basename "$(cat second)")" ckpt-000001 "the first has left no checkpoint"
await -t 60 watched 'ckpt-000001, ' >/dev/null
kill -USR1 "$sup"
wait "$sup"
is "$?$(tail -n 1 out)" 0ok "the program is as it was"
wait $watch
is $? 0 "--watch ends with the program"
like "$(cat watched)" "no checkpoint yet
.*writing memory, .*
.*ckpt-000001, [0-9.]+ [KM]iB stored, pause" "it has shown what happened"

arena cancel
launch "$victim/idle"
trecr-ckpt -s $slowly "$sup" 2>stop.err &
client=$!
ok "a checkpoint that is to end the program is under way" await_status '^now +writing memory'
kill -TERM "$sup" # held back: it would end the program
kill -CONT "$sup"
ok "a signal does not disturb it" await_status '^now +writing memory'
kill -INT "$sup"
wait $client
is $? 1 "SIGINT cancels it"
like "$(cat stop.err)" 'cancelled: by SIGINT' "it says so"
wait "$sup"
is $? 143 "the program gets what had been held back, in its order"
is "$(ls ck)" lock "there is no checkpoint"

arena deadline
launch "$victim/idle"
not_ok "a deadline that cannot be met" trecr-ckpt $slowly --deadline 5 "$sup" 2>deadline.err
like "$(cat deadline.err)" 'cannot be ready before the deadline: .* still to be written, and at' \
	"is known before it is over"
ok "one that can is" quiet trecr-ckpt --deadline 60 "$sup"
ok "with any number of threads" quiet trecr-ckpt -j 7 "$sup"
freeze_away
quiet trecr-restart -D --pidfile up -j 7 ck
sup=$(cat up)
ok "also to read" quiet kill -USR1 "$sup"
await -t 60 out '^ok$' >/dev/null
is "$(tail -n 1 out)" ok "the program is as it was"
sweep >/dev/null

# Processes whose memory is written while that of others is listed.
arena tree
launch "$victim/tree_family"
trecr-ckpt $slowly "$sup" >first 2>first.err &
client=$!
ok "the status tells how far a checkpoint of a tree is" \
	await_status '^now +writing memory, [0-9.]+ (bytes|[KM]iB) of [0-9.]+ [KM]iB, [0-9.]+ (bytes|[KM]iB)/s'
kill -TERM $client
wait $client
not_ok "a deadline that it cannot meet" trecr-ckpt $slowly --deadline 5 "$sup" 2>deadline.err
like "$(cat deadline.err)" 'cannot be ready before the deadline: .* still to be written, and at' \
	"is known before it is over"
ok "one that it can" quiet trecr-ckpt --deadline 60 "$sup"
finish
is "$status" 0 "the tree is as it was" || explain

# A batch system's way: a signal, and some seconds.
arena signal
RUN_FLAGS="--ckpt-signal=USR2 --deadline=5 $slowly" launch "$victim/idle"
kill -USR2 "$sup"
await -t 60 -p "$sup" err 'cannot checkpoint: .*before the deadline' >/dev/null
is $? 0 "--deadline holds for checkpoints on a signal" || diag "$(cat err)"
kill -USR1 "$sup"
wait "$sup"
is $? 0 "the program runs on"
done_testing
