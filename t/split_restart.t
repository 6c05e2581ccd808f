#!/bin/bash
# Programs with a lower half are checkpointed, killed and restarted, over the simulated driver.
. "${0%/*}/lib.sh"
apart -i # the simulated driver's segments end with it, even if it is killed before it has removed them

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/stateless"
cycle "$split/stateless" 1000
cycle "$split/stateless" 2000

cycle "$split/objects"
cycle "$split/linker"
cycle "$split/gone"
cycle "$split/gone" primary
cycle "$split/held"
cycle "$split/queued"
cycle "$split/family"
cycle "$split/printed"
cycle "$split/closed_library"
LD_LIBRARY_PATH=$build/t/sim/large cycle "$split/huge_code"
LD_LIBRARY_PATH=$build/t/sim/large cycle "$split/huge_code" off

# A driver's own threads are not stopped: what they map and attach meanwhile is no part of an image.
echo "background 1" >"$scratch/machine"
export SIM_MACHINE_FILE=$scratch/machine
cycle "$split/closed_library"
cycle "$split/objects"
cycle "$split/family"
RUN_FLAGS="--gpu=on --incremental" RESTART_FLAGS=--incremental cycle "$split/held"
# With NUMA policies, of the program and of what the driver maps.
echo "background 2" >"$scratch/machine"
TRECR_TEST_NUMA=1 cycle "$split/policies"
unset SIM_MACHINE_FILE

# What the driver maps at addresses that it chooses is left out, of children, too.
arena outside
launch "$split/family" && ok "a checkpoint of a family" checkpoint || explain
trecr-inspect --regions ck >regions
like "$(cat regions)" " 47f000000000-" "with the records"
unlike "$(cat regions)" " 200000000-" "without what is the driver's"
finish

# Device memory that has not changed is not written again.
RUN_FLAGS="--gpu=on --incremental" RESTART_FLAGS=--incremental cycle "$split/held"

# ---- what is used ----

arena coverage
trecr-run --coverage=used "$split/prints" >/dev/null 2>err
is "$(sort -u used)" "$(cat used)" "each function once, in order"
like "$(cat used)" "(^|
)cuInit manual
" "what is used is listed, with its class"
like "$(cat used)" "cuLaunchKernel launch" "as is what is called often"
unlike "$(cat used)" "cuMemAllocManaged" "what is not used is not"
trecr-run --gpu=on "$split/prints" >without 2>&1
trecr-run --coverage=used "$split/prints" >with 2>&1
is "$(cat with)" "$(cat without)" "the program notices nothing"

# ---- what is refused ----

# refused NAME PATTERN: the checkpoint of $sup is, with a line that matches, and the program lives.
refused() {
	: >ckpt.err
	not_ok "$1: refused" quiet checkpoint
	like "$(cat ckpt.err)" "$2" "and why"
	is "$(wc -l <ckpt.err)" 1 "in one line"
}

# unharmed: the program runs on to its end.
unharmed() {
	finish && [ "$status" = 0 ] && said_ok
	result $? "and the program is unharmed" || explain
	sweep 2 >/dev/null
}

arena past
if started env -u LD_AUDIT "$split/stateless"; then
	refused "a driver that was loaded past trecr" \
		"process [0-9]+ \(stateless\) has loaded the GPU driver's library .*/libcuda.so.1 past"
	unharmed
fi

arena high_descriptor
if started "$split/high_descriptor"; then
	refused "a descriptor among those of the driver" \
		"descriptor 300 of process [0-9]+ \(high_descriptor\) lies among those of the driver, from 256"
	unharmed
fi

# Memory of the program's among the driver's addresses: refused as long as there is any.
for when in before after; do
	arena window_mapping
	started "$split/window_mapping" $when || continue
	bad=
	n=1
	while line=$(await -p "$sup" out "^(has|none) $n" 2>>await.err); do
		: >ckpt.err
		[ "${line%% *}" != none ] || break
		if checkpoint; then
			bad+=" $n: taken"
		elif ! grep -qE "\(window_mapping\) has memory of its own at ${line##* }-0x[0-9a-f]+, in the range" ckpt.err; then
			bad+=" $n: $(cat ckpt.err)"
		fi
		kill -USR1 "$sup"
		n=$((n + 1))
	done
	is "$bad" "" "memory of the program's among the driver's addresses, from $when: refused"
	ok "there was some" [ "$n" -gt 4 ]
	# With memory there when the driver came up, the driver has its contexts where a restart has none.
	if [ $when = before ]; then
		: >ckpt.err
		not_ok "without, but with contexts that are elsewhere: refused" quiet freeze_away
		like "$(cat ckpt.err)" "a context is at 0x[0-9a-f]+ here, but was at 0x[0-9a-f]+, as memory of the program, or ulimit -v, left no room" "and why"
		finish && [ "$status" = 0 ] && is "$(tail -n 1 out)" ok "and the program is unharmed" || explain
		sweep 2 >/dev/null
		continue
	fi
	freeze_away && unlike "$(trecr-inspect ck)" sysv "the driver's shared memory is not saved"
	restart_here && finish && [ "$status" = 0 ] && is "$(tail -n 1 out)" ok \
		"without, the program comes back" || explain
	sweep 2 >/dev/null
done

# Kernels that wait for what the host does, which stands still: it runs on until they have got it.
cycle "$split/awaits" turns
cycle "$split/awaits" inside
cycle "$split/awaits" prints
cycle "$split/awaits" maps
cycle "$split/awaits" links
arena never
RUN_FLAGS="--gpu=on --drain-timeout=1"
if started "$split/awaits" never; then
	refused "a kernel that waits for what does not come" \
		"\(awaits\): stream 0x[0-9a-f]+ on GPU 0 has work that .* \(--drain-timeout: 1 s\)"
	not_ok "likewise with what trecr-ckpt is told" quiet checkpoint --drain-timeout=2
	like "$(cat ckpt.err)" "--drain-timeout: 2 s" "which is said"
	unharmed
fi
RUN_FLAGS=--gpu=on

# What the lower half says is done need not be.
arena early
echo "stray_events 1" >machine
SIM_MACHINE_FILE=$PWD/machine cycle "$split/unfinished_kernels"

# What trecr reads of the program may be anything.
for what in entries depth places version build "done" size room seals; do
	arena "$what"
	if started "$split/hostile" "$what" && ok "a checkpoint before" checkpoint; then
		kill -USR1 "$sup"
		await_dir spoilt
		case $what in
		version) why="process [0-9]+ uses libraries of another version of trecr" ;;
		build) why="the lower half of process [0-9]+ is of another build of trecr" ;;
		"done") why="its descriptor [0-9]+ is another file now" ;;
		size | room | seals) why="the staging buffer of process [0-9]+ is not what its lower half has" ;;
		*) why="the records of its lower half that process [0-9]+ holds for trecr have been overwritten" ;;
		esac
		refused "a program that has overwritten $what" "$why"
		unharmed
	fi
done

# A device that is lost when the checkpoint is to be taken.
arena lost
export SIM_FAIL_FILE=$PWD/fail
if started "$split/stateless"; then
	echo cuDevicePrimaryCtxGetState:1:719 >fail
	refused "a device that fails" \
		"process [0-9]+ \(stateless\): cuDevicePrimaryCtxGetState gave error 719"
	ok "the next checkpoint is taken" checkpoint
	unharmed
fi

# A stopped program, whose lower half is stopped, too.
arena stopped
if started "$split/stateless"; then
	inside=$(program_of "$sup")
	kill -STOP "$inside"
	refused "a program that is stopped" "process [0-9]+ is stopped by a signal"
	kill -CONT "$inside"
	unharmed
fi

# restart_fails NAME PATTERN: says so in one line, and leaves nothing behind.
restart_fails() {
	: >restart.err
	not_ok "restart $1: refused" quiet restart_detached
	like "$(cat restart.err)" "$2" "and why"
	is "$(grep -c '^trecr-restart: cannot ' restart.err)" 1 "in one line"
	leaves_nothing "and nothing is left of it"
}

# The same checkpoint restarts when what was missing is there again.
restarts_after_all() {
	: >restart.err
	restart_here && unharmed || explain
}

# A device that does not come up.
arena device
export SIM_FAIL_FILE=$PWD/fail
if started "$split/stateless" && ok "a checkpoint" freeze_away; then
	echo cuInit:1:100 >fail
	restart_fails "without a device" "cuInit gave error 100"
	echo cuInit:1:-9 >fail
	restart_fails "with a driver that ends the process" \
		"process [0-9]+ has ended while its lower half was at work"
	rm fail
	restarts_after_all
fi

# Another driver, another GPU, or none.
arena machine
export SIM_MACHINE_FILE=$PWD/machine
if started "$split/objects" && ok "a checkpoint" freeze_away; then
	another() { # LINE PATTERN
		echo "$1" >machine
		restart_fails "on a machine with $1" "$2"
		rm machine
	}
	another "version 12080" \
		"the driver here is for CUDA 12.8, the program ran on one for CUDA 13.0"
	another "devices 0" "the program had 1 GPUs, here there are 0"
	another "devices 2" "the program had 1 GPUs, here there are 2"
	another "name Other" \
		"GPU 0 here is \"Other\" with 8192 MiB, the program ran on \"Simulated\" with 8192"
	restarts_after_all
fi
unset SIM_MACHINE_FILE

# Each of the driver's functions fails once, at whatever is done then: it is said which it was, and
# neither the program nor the image is harmed. (What is done with the lower half's own thread
# when all is over may fail.)
arena steps
export SIM_FAIL_FILE=$PWD/fail
if started "$split/objects"; then
	for call in cuModuleGetGlobal_v2 cuLibraryGetGlobal cuDeviceGetAttribute \
		cuEventElapsedTime cuThreadExchangeStreamCaptureMode; do
		echo "$call:1:999" >fail
		: >ckpt.err
		not_ok "$call fails: refused" quiet checkpoint
		like "$(cat ckpt.err)" "gave error 999" "and why"
	done
	bad='' count=0
	for step in 1 2 4 6 7 9 10 12 14 16; do
		echo "*:$step:999" >fail
		: >ckpt.err
		checkpoint && continue
		grep -q "gave error 999" ckpt.err || bad+=" $step: $(cat ckpt.err)"
		count=$((count + 1))
	done
	is "$bad" "" "a checkpoint that fails at any step says at which"
	ok "and most steps can fail ($count of 10)" [ "$count" -ge 7 ]
	rm fail
	ok "the next checkpoint is taken" freeze_away
	bad='' count=0
	for step in 1 3 6 9 12 18 24 31 39 48 57 66 75 84 94 104 114 124; do
		echo "*:$step:999" >fail
		: >restart.err
		if quiet restart_detached; then
			sweep 2 >/dev/null
			continue
		fi
		grep -q "gave error 999" restart.err || bad+=" $step: $(cat restart.err)"
		sweep 60 || bad+=" $step: something is left"
		count=$((count + 1))
	done
	is "$bad" "" "a restart that fails at any step says at which, and leaves nothing"
	ok "and most steps can fail ($count of 18)" [ "$count" -ge 14 ]
	rm fail
	restarts_after_all
fi

# A driver that ends the process while the checkpoint is taken.
arena ends
export SIM_FAIL_FILE=$PWD/fail
if started "$split/stateless"; then
	echo cuDevicePrimaryCtxGetState:1:-9 >fail
	refused "a driver that ends the process" \
		"process [0-9]+ has ended while its lower half was at work"
	wait "$sup"
	is "$?" 137 "and the program's end is told"
	sweep 2 >/dev/null
fi
unset SIM_FAIL_FILE

# Files of the lower half that are gone, or others; another driver.
arena files
cp -r "$build/lib/trecr" trecr
mkdir sim
cp "$build/t/sim/"libcuda.so.1 "$build/t/sim/"libnvidia-ml.so.1 sim
if LD_AUDIT=$PWD/trecr/libtrecr-audit.so LD_LIBRARY_PATH=$PWD/sim RUN_FLAGS=--gpu=off \
	started "$split/stateless" && ok "a checkpoint" freeze_away; then
	mv trecr/trecr-lower aside
	restart_fails "without a part of the lower half" \
		"libraries of trecr [0-9.]+ in .*/trecr, and .*/trecr/trecr-lower is gone or has changed"
	mv aside trecr/trecr-lower
	mv sim/libcuda.so.1 aside
	restart_fails "without a driver" "GPU driver or MPI library that it ran with, and its libraries, unchanged.*/sim/libcuda.so.1, .*: No such"
	cp "$build/t/sim/echo/libcuda.so.1" sim
	restart_fails "with another driver" \
		"GPU driver or MPI library that it ran with, and its libraries, unchanged.*/sim/libcuda.so.1 has changed since the checkpoint"
	mv aside sim/libcuda.so.1
	restarts_after_all
fi

# ---- disturbances ----

# With work on streams, and handlers that come in between: frozen or refused, it runs on.
arena hammer
if started "$split/hammer" 6; then
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		trecr-ckpt "$sup" >>ckpt.out 2>>ckpt.err
	done
	wait "$sup"
	is "$?$(tail -n 1 out)" "0done" "20 freezes of busy threads harm none" || explain
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
	await -t 60 -p "$inside" 2>/dev/null || bad+=" $i:hangs"
	said_ok || bad+=" $i:harmed($(tail -n 1 out))"
	sweep 2 >/dev/null
done
is "$bad" "" "SIGKILL to the supervisor during a checkpoint"

# A program with one thread that is just about to bring its lower half up.
arena about
bad=
for ((i = 1; i <= ${EARLY_ROUNDS:-20}; i++)); do
	rm -rf ck out
	trecr-run --gpu=on -d ck "$split/closed_library" </dev/null >out 2>err &
	sup=$!
	moment 12
	until checkpoint -s; do [ -d "/proc/$sup" ] || break 2; done
	wait "$sup"
	restart_here && await -p "$sup" out '^ready' >/dev/null 2>>await.err && finish &&
		[ "$status" = 0 ] && said_ok || bad+=" $i:$(tail -n 1 restart.err out | tr '\n' ' ')"
	sweep 2 >/dev/null
done
is "$bad" "" "a checkpoint while the lower half is brought up"

done_testing
