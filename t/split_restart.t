#!/bin/bash
# Programs with a lower half are checkpointed, killed and restarted, over the simulated driver.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/stateless"
cycle "$split/stateless" 1000
cycle "$split/stateless" 2000

# With work on streams, and handlers that come in between: frozen or refused, it goes on.
arena hammer
if launch "$split/hammer" 6; then
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		trecr-ckpt "$sup" >>ckpt.out 2>>ckpt.err
	done
	wait "$sup"
	is "$?$(tail -n 1 out)" "0done" "20 freezes of busy threads harm none" || explain
else
	result 1 "the program starts" || explain
fi
sweep >/dev/null

# A supervisor that dies while it stops threads of the lower half.
moment() { # to spread the blows, not to wait for something
	perl -e 'select undef, undef, undef, rand($ARGV[0]) / 1000' "$1"
}

arena supervisor
bad=
for ((i = 1; i <= ${KILL_ROUNDS:-12}; i++)); do
	rm -rf ck
	launch "$split/stateless" 1000 || { bad+=" start"; break; }
	inside=$(program_of "$sup")
	trecr-ckpt "$sup" >/dev/null 2>&1 &
	request=$!
	moment 12
	kill -KILL "$sup"
	wait "$sup" $request 2>/dev/null
	kill -USR1 "$inside"
	await -t 20 -p "$inside" 2>/dev/null || bad+=" $i:hangs"
	said_ok || bad+=" $i:harmed($(tail -n 1 out))"
	sweep 2 >/dev/null
done
is "$bad" "" "SIGKILL to the supervisor during a checkpoint"

done_testing
