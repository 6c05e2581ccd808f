#!/bin/bash
# Watches of an ordinary user's: nobody may open the files by their handles (CAP_DAC_READ_SEARCH).
. "$(dirname "$0")/lib.sh"

if am_root && have setpriv && [ -z "${TRECR_DROPPED:-}" ]; then
	cd "$top" && rm -rf "$scratch"
	TRECR_DROPPED=1 exec setpriv --bounding-set=-dac_read_search -- "$BASH" "t/${0##*/}"
fi

cycle inotify
cycle watches
cycle inotify_queue
cycle inotify_queue full

# A program that runs on keeps its events; one that is restored later is told that they are lost.
arena later
export VICTIM_MAY_LOSE=1
launch "$victim/inotify_queue" && checkpoint && kill "$(program_of "$sup")" && await -p "$sup" &&
	restart_here && finish
is "$status $(sed 1d out | xargs)" "0 lost ok" "after a checkpoint from which it ran on: lost, and said so" ||
	explain
unset VICTIM_MAY_LOSE

# The events of a program that was to be ended, and is not.
arena failed
export VICTIM_MAY_LOSE=1
trecr-run() {
	exec env LD_PRELOAD="$build/t/fault.so" TRECR_FAULT="$PWD/fault" "$build/trecr-run" "$@"
}
faults fault off
launch "$victim/inotify_queue" && faults fault name 1 commit
not_ok "a program is to be ended, but its checkpoint cannot be completed" quiet freeze_away
finish
is "$status $(sed 1d out | xargs)" "0 lost ok" "it is told that its events are lost" || explain

# A supervisor that is killed before the program has been ended leaves it so, too.
arena killed
faults fault off
launch "$victim/inotify_queue"
program=$(program_of "$sup")
faults fault name 1 commit kill
not_ok "a program is to be ended, and its supervisor is killed" quiet checkpoint -s
await -t 60 -p "$sup" 2>>await.err
kill -USR1 "$program"
await -t 60 -p "$program" 2>>await.err
is "$(sed 1d out | xargs)" "lost ok" "it is told that its events are lost, too" || explain
sweep >/dev/null
unset VICTIM_MAY_LOSE
unset -f trecr-run

# A restart makes a file without a name in a directory that is watched, which the program does not see.
arena unnamed
cat >watch.py <<-'END'
	import ctypes, os, signal, struct
	libc = ctypes.CDLL(None, use_errno=True)
	os.mkdir('watched')
	written = open('watched/written', 'w+')
	written.write('kept'), written.flush()
	read = open('watched/written')
	os.unlink('watched/written')
	events = libc.inotify_init1(os.O_NONBLOCK)
	if libc.inotify_add_watch(events, b'watched', 0xfff) < 0:
	    raise OSError(ctypes.get_errno(), 'inotify_add_watch')
	signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
	print('ready', flush=True)
	signal.sigwait({signal.SIGUSR1})
	try:
	    while True:
	        data, at = os.read(events, 65536), 0
	        while at < len(data):
	            _, mask, _, size = struct.unpack_from('iIII', data, at)
	            name = data[at + 16:at + 16 + size].rstrip(b'\0')
	            if name:
	                print(hex(mask), name)
	            at += 16 + size
	except BlockingIOError:
	    print(read.read(), flush=True)
END
if ! have python3; then
	skip "a file without a name that a restart makes is not seen by a watch" "no python3"
else
	launch python3 watch.py && freeze_away && restart_detached && freeze_away && restart_here && finish
	is "$status $(sed 1d out | xargs)" "0 kept" "a file without a name that a restart makes is not seen by a watch" || explain
	sweep >/dev/null
fi

# A tree with a thousand of directories, by a program that works elsewhere.
if have inotifywait; then
	arena tree
	for i in {1..20}; do
		eval "mkdir -p tree/$i/{1..50}"
	done
	far=$PWD
	(cd / && exec trecr-run -d "$far/ck" -- inotifywait -m -r -e create --format '%w%f' \
		-o "$far/seen" "$far/tree" <&- >"$far/out" 2>"$far/err") &
	sup=$!
	await -t 60 -p $sup err 'Watches established' >/dev/null
	ok "inotifywait with a thousand watches is saved" freeze_away
	ok "and comes back" restart_detached
	: >tree/20/50/new
	ok "with its watches" await -t 60 -p "$sup" seen 'tree/20/50/new$'
	kill "$(program_of "$sup")"
	sweep >/dev/null
fi
done_testing
