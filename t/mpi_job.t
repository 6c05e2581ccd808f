#!/bin/bash
# MPI programs that a launcher has started, each rank under a trecr-run of its own and with MPICH's library
# in its lower half: saved together, killed, and brought back by another launcher.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
. "$top/t/mpi_job_lib.sh"

build_programs mpi_alone mpi_job mpi_messages mpi_buffered mpi_lasting mpi_windows mpi_many_windows mpi_files mpi_sessions mpi_partitioned
alone=$PWD/mpi_alone job=$PWD/mpi_job messages=$PWD/mpi_messages lasting=$PWD/mpi_lasting
windows=$PWD/mpi_windows many=$PWD/mpi_many_windows buffered=$PWD/mpi_buffered files=$PWD/mpi_files sessions=$PWD/mpi_sessions partitioned=$PWD/mpi_partitioned

# ---- one rank ----

# back: until the one program runs that has come from the last image.
back() {
	ranks 1 trecr-restart --pidfile pidfile ck
	await -t 60 -p "$launcher" -e pidfile 2>>await.err && sup=$(supervisor_of 0)
}

arena one
step=start && ranks 1 "${run[@]}" "$alone" launched &&
	await -t 60 -p $launcher out.0 '^ready$' >/dev/null 2>>await.err && sup=$(supervisor_of 0) &&
	step="its descriptors" &&
	[ -z "$(find "/proc/$(program_of "$sup")/fd" -regex '.*/\([3-9]\|[0-9][0-9]\)' -lname 'socket:*')" ] &&
	for round in first second third; do
		step="$round checkpoint" && checkpoint && kill_all && rm -f pidfile &&
			step="$round restart" && back || break
	done && [ "$round" = third ] &&
	step="its end" && kill -USR1 "$sup" && launched_well && [ "$(cat out.0)" = ok ]
tell "a launcher's only rank leaves its connection to the lower half, and has another launcher's thrice"
kill_all

ranks 2 trecr-restart ck
await -t 60 -p $launcher 2>>await.err
like "$(cat err.*)" 'the number of ranks was 1, and the launcher has started 2|running already' \
	"by a launcher with two ranks it is not brought back"

# ---- what a launcher leaves open ----

arena descriptors
exec 7> >(cat >/dev/null)
# shellcheck disable=SC2016 # of the inner shell
ranks 2 "${run[@]}" -- sh -c '[ -e /proc/self/fd/7 ] && [ -e "/proc/self/fd/$PMI_FD" ] && echo given'
await -t 60 -p $launcher 2>>await.err
exec 7>&-
is "$(cat out.* | sort -u)" given "a rank has the descriptors that it was given"
like "$(cat err.0)" '^trecr-run: no checkpoint will be possible [^,]* descriptor 7 \(pipe:\[[0-9]*\]\), which leads ' \
	"and none that the launcher has for itself"

# In the program the library needs the connection: without it, it would end the program.
arena connection
ranks 1 trecr-run -d ck --gpu=off --mpi=whole -- "$alone" launched
await -t 60 -p $launcher out.0 '^ready$' >/dev/null 2>>await.err
sup=$(supervisor_of 0)
[ "$(wc -l <err.0)" = 1 ] && ! checkpoint && kill -USR1 "$sup" && await -t 60 -p $launcher 2>>await.err &&
	[ "$(tail -n 1 out.0)" = ok ]
tell "with the library in the program, a rank keeps its connection"
like "$(cat err.0)" '^trecr-run: .* descriptor [0-9]+, its connection to the launcher .*for an MPI program, --mpi=lower' \
	"is told what takes it out of the way"
like "$(cat ckpt.err)" 'socket' "and is refused a checkpoint"
kill_all

# ---- several ----

for count in $(sizes 2 5); do
	job_arena "$count"
	three_times $count
	tell "$count ranks, three times saved, killed and brought back"
	kill_all
done

# Messages of all kinds are under way at each moment.
PROGRAM=$messages
for count in $(sizes 2 5); do
	job_arena messages-$count
	three_times $count
	tell "$count ranks that send each other messages, three times saved, killed and brought back"
	kill_all
done

# They are buffered, and the buffer is detached before they are asked for.
PROGRAM=$buffered
for count in $(sizes 2 3); do
	job_arena buffered-$count
	three_times $count
	tell "$count ranks that send each other buffered messages, three times saved, killed and brought back"
	kill_all
done

# What they send each other belongs to sessions; without MPI_Init, and with it.
PROGRAM=$sessions
for count in $(sizes 2 3); do
	for how in '' world ended; do
		job_arena sessions-$count
		# shellcheck disable=SC2086 # none, or one
		three_times $count $how
		tell "$count ranks with sessions${how:+ and MPI_Init ($how)}, three times saved, killed and brought back"
		kill_all
	done
done

# Partitions are ready, and some are not, at each moment.
PROGRAM=$partitioned
for count in $(sizes 2 3); do
	job_arena partitioned-$count
	three_times $count
	tell "$count ranks that send each other partitioned messages, three times saved, killed and brought back"
	kill_all
done

# Persistent collective calls, MPI_Isendrecv, and requests that the program completes itself.
PROGRAM=$lasting
for count in $(sizes 2 3); do
	job_arena lasting-$count
	three_times $count
	tell "$count ranks with requests that are none of a message, three times saved, killed and brought back"
	kill_all
done

# Windows, with locks that are held, and operations and epochs that are under way at each moment.
PROGRAM=$windows
for count in $(sizes 2 3); do
	job_arena windows-$count
	three_times $count
	tell "$count ranks that reach each other's windows, three times saved, killed and brought back"
	kill_all
done

# Many at a time, which share what the library has for them.
PROGRAM=$many
for how in '' threads; do
	count=$([ -n "$how" ] && echo 2 || echo 3)
	job_arena "many-windows-$how"
	# shellcheck disable=SC2086 # none, or one
	three_times "$count" $how
	tell "$count ranks with many windows${how:+, of two threads}, three times saved, killed and brought back"
	kill_all
done

job_arena churn
step="its end" && ranks 2 "${run[@]}" -- "$many" churn && launched_well && [ "$(cat out.* | sort -u)" = ok ]
tell "windows that are freed leave nothing in the library"
kill_all

# Files that they read and write together.
PROGRAM=$files
for count in $(sizes 2 3); do
	job_arena files-$count
	three_times $count
	tell "$count ranks that have files open, three times saved, killed and brought back"
	kill_all
done

PROGRAM=$messages
# A synchronous send ends when its message is asked for: not before, by a checkpoint.
job_arena ssend
step=start && start_job 2 ssend && await -t 60 -p $launcher out.1 '^ready$' >/dev/null 2>>await.err
! job_checkpoint
like "$(cat ckpt.err)" 'a synchronous send \(MPI_Ssend\) .*: rank 0 waits in MPI_Ssend for rank 1' \
	"a synchronous send that no rank has asked for is refused"
: >asked && finish_job 2 ready
tell "and the job goes on to its end"
kill_all
unset PROGRAM

job_arena ended
step=start && start_job 3 && step=checkpoint && job_checkpoint -s && step="its end" &&
	await -t 60 -p $launcher 2>>await.err && step=restart && restart_job 3 && step="its end" && finish_job 3
tell "trecr-ckpt -s ends all ranks, which are brought back"
kill_all

job_arena asked
step=start && start_job 2
trecr-ckpt -t 60 ck >one 2>>ckpt.err &
one=$!
trecr-ckpt -t 60 "$(program_of "$(supervisor_of 1)")" >two 2>>ckpt.err
wait $one
is "$(sort one two | sed 's/.*-//' | tr '\n' ' ')" "000001 000002 " "two requests at once are two checkpoints" || explain
shown=$(trecr-inspect ck)
ranks="ranks +2, on 1 node
 +RANK +NODE [^
]*
 +0 +[^
]+ ms +[1-9][0-9]* [^
]*mpi_job
 +1 +[^
]+ ms +[1-9][0-9]* [^
]*mpi_job
"
like "$shown" "$ranks" "trecr-inspect shows the ranks"
like "$shown" "COMMUNICATOR .* MPI_COMM_WORLD +2 +2 +[1-9][0-9]* +MPI_[A-Z][a-z]+.* 0\.1 +2 +2 " \
	"and their communicators"
like "$shown" "
  MPI_COMM_SELF +1 +2 " "each rank's own by its name"
unnamed=$(grep -c '^ *18446744073709551615' <<<"$shown")
is "$unnamed" 0 "and none that is the library's or the stub's own"
finish_job 2 ready
tell "and the job goes on to its end"

ranks 3 trecr-restart ck
await -t 60 -p $launcher 2>>await.err
like "$(cat err.*)" 'of a job of 2 ranks, and 3 have been started' "with another number of ranks it is not brought back"

# One rank's library does not come up, while the others wait for it in MPI_Init.
ranks 1 trecr-restart ck : -n 1 env UCX_TLS=none trecr-restart ck
await -t 60 -p $launcher 2>>await.err
result $? "a rank that cannot be brought back ends the restart of all" || explain err.*
like "$(cat err.0)" 'cannot restart ck: rank 1: process [0-9]+ [^ ]* the library gives up with exit status [0-9]+, and has said why' \
	"which one rank says"
is "$(cat err.1 2>/dev/null | grep -c 'cannot restart')" 0 "and no other"
kill_all

# ---- what is refused ----

refused() { # COUNT ARGUMENT REASON
	job_arena refused
	start_job "$1" "$2"
	! job_checkpoint
	like "$(cat ckpt.err)" "$3" "$2 is refused by its name"
	[ ! -e ck/ckpt-000001 ] && finish_job "$1" ready
	tell "and the job goes on to its end"
	kill_all
}

refused 2 MPI_T_init_thread 'rank 1: process [0-9]+ has called MPI_T_init_thread, and what that leaves'

job_arena by_itself
RUN_FLAGS=--alone start_job 2
sup=$(supervisor_of 0)
! checkpoint
like "$(cat ckpt.err)" 'process [0-9]+ is one of several ranks of MPI .* saved with the others only' \
	"a rank with --alone is refused"
finish_job 2 ready
tell "and the job goes on to its end"

# ---- failures ----

# restless PATTERN: until a checkpoint is refused for this. The ranks may not yet have come to where they stay.
restless() {
	for ((i = 0; i < 60; i++)); do
		! job_checkpoint --drain-timeout 1 && grep -qE "$1" ckpt.err && break
		: >ckpt.err
		pause 0.5
	done
	cat ckpt.err
}

# Ranks wait in collective calls for a rank that sleeps for long.
job_arena late
mkfifo bed
late="the ranks do not come to rest together .*rank 0 waits in MPI_[A-Za-z_]+ for ranks .*; rank 1 computes"
start_job 3 late && await -t 60 -p $launcher -e asleep 2>>await.err
like "$(restless "$late")" "$late" "ranks that do not come to rest are named"
for option in timeout deadline; do
	! trecr-ckpt --$option $((3 * slow)) --drain-timeout $((60 * slow)) ck >/dev/null 2>in_time
	like "$(cat in_time)" '(--'$option' gives them more time\)|had not come to rest together): .*rank 1 computes' \
		"also when the time of --$option has passed before that of --drain-timeout" || explain
	unlike "$(cat in_time)" '[ (]--'"$([ $option = timeout ] && echo deadline || echo timeout)" "and no other option is named"
done
step="going on" && : >bed && all_in_a_round 3 && step="next checkpoint" && job_checkpoint && kill_all &&
	step=restart && restart_job 3 && step="its end" && finish_job 3
tell "they go on, and are saved when it wakes up"
kill_all

# They have started a persistent collective call, and one has not.
job_arena started
mkfifo bed
step=start && PROGRAM=$lasting start_job 3 late && await -t 60 -p $launcher -e asleep 2>>await.err &&
	await -t 60 -p $launcher -e begun.0 2>>await.err && await -t 60 -p $launcher -e begun.2 2>>await.err
started="the ranks do not come to rest together .*rank 1 computes"
like "$(restless "$started")" "$started" \
	"a rank that has not started a persistent call is named"
step="going on" && : >bed && all_in_a_round 3 && step="next checkpoint" && job_checkpoint && kill_all &&
	step=restart && restart_job 3 && step="its end" && finish_job 3
tell "and is saved when it has"
kill_all

# They wait in a call for one that no count tells of.
job_arena between
step=start && ranks 4 "${run[@]}" -- "$job" between && await -t 60 -p $launcher -e asleep 2>>await.err &&
	step=checkpoint && job_checkpoint && step="going on" && all_in_a_round 4 && step="next checkpoint" && job_checkpoint &&
	kill_all && step=restart && restart_job 4 && step="its end" && finish_job 4
tell "a rank is let on that others wait for to make a communicator between two groups"
kill_all

# What it does by itself is no reason to keep it.
job_arena apart
step=start && ranks 4 "${run[@]}" -- "$job" apart && await -t 60 -p $launcher -e asleep 2>>await.err &&
	step=checkpoint && job_checkpoint && [ -e awake ] && step="going on" && all_in_a_round 4 && kill_all &&
	step=restart && restart_job 4 && step="its end" && finish_job 4 ready
tell "a rank that others wait for is not kept in front of what it does by itself"
kill_all

# Nothing can be asked of a communicator whose MPI_Comm_idup is not complete.
job_arena copying
step=start && ranks 4 "${run[@]}" -- "$job" copying && all_asleep 4 && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && ranks 4 trecr-restart ck && : >awake && step="its end" && all_in_a_round 4 && finish_job 4 ready
tell "a communicator that all ranks have begun to copy comes back with its members in their order"
kill_all

# A rank waits in MPI_Buffer_detach for one that asks for nothing.
job_arena detaching
PROGRAM=$buffered
step=start && ranks 2 "${run[@]}" -- "$buffered" detaching && all_asleep 2 && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && ranks 2 trecr-restart ck && : >awake && step="its end" && all_in_a_round 2 && finish_job 2 ready
tell "a rank that waits until its buffered messages are asked for is saved, and the messages come"
kill_all

# The communicators are no more. The program does not look at what has been sent in its own buffer, or in a communicator's.
for moment in freed flushing; do
	job_arena $moment
	step=start && ranks 2 "${run[@]}" -- "$buffered" $moment && all_asleep 2 && step=checkpoint && job_checkpoint && kill_all &&
		step=restart && ranks 2 trecr-restart ck && : >awake && step="its end" && all_in_a_round 2 && finish_job 2 ready
	tell "with buffered messages ($moment) a job is saved, and they come once"
	kill_all
done

# Some partitions are ready; all of a message are, whose receive has not been started.
job_arena parts
step=start && ranks 2 "${run[@]}" -- "$partitioned" asleep && all_asleep 2 && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && ranks 2 trecr-restart ck && : >awake && step="its end" && all_in_a_round 2 && finish_job 2 ready
tell "partitions that are ready are so after a restart, and what they wait for comes"
kill_all

# A library before MPI 4.0 is one without these functions: they are not found by their names.
job_arena older
library=$(ldd "$partitioned" | sed -n 's/.*libmpich.so.12 => \([^ ]*\).*/\1/p')
mkdir older && sed 's/MPI_\(Pack\|Unpack\|Type_size\|Type_get_extent\)_c\x00/MPI_\1_x\x00/g' "$library" >older/libmpich.so.12
step=start && start_job 2 && step=checkpoint && job_checkpoint && kill_all && step=restart &&
	ranks 2 trecr-restart "--mpi=$PWD/older/libmpich.so.12" ck && all_in_a_round 2 && step="the library" &&
	grep -q "/older/libmpich" "/proc/$(program_of "$(supervisor_of 0)")/maps" && step="its end" && finish_job 2
tell "partitioned messages go on with a library that has no functions for large counts"
kill_all

# A rank waits for a message on a communicator that has been freed, and another one is in a collective call. They may not
# have come to that yet.
job_arena waiting
waiting="the ranks do not come to rest together .*rank 0 waits in MPI_Wait for rank 2"
step=start && ranks 3 "${run[@]}" -- "$partitioned" waiting && await -t 60 -p $launcher -e asleep.2 2>>await.err
like "$(restless "$waiting")" "$waiting" "a rank that waits for a partitioned message is named with the rank that is to send it"
step="going on" && : >awake && all_in_a_round 3 && step="its end" && finish_job 3 ready
tell "and the job goes on to its end"
kill_all

# A rank waits in MPI_Finalize until they are asked for.
job_arena finalizing
step=start && ranks 2 "${run[@]}" -- "$buffered" finalizing && all_asleep 2 && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && ranks 2 trecr-restart ck && : >awake && step="its end" && launched_well &&
	[ "$(cat out.* | sort | uniq -c | tr -s ' \n' ' ')" = " 2 ok " ]
tell "a rank that waits in MPI_Finalize for its buffered messages is saved, and the messages come"
kill_all
unset PROGRAM

# What one rank has added to the memory of another that does not look, and a lock that is held and waited for.
job_arena begun
PROGRAM=$windows
step=start && ranks 3 "${run[@]}" -- "$windows" begun && all_asleep 3 && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && ranks 3 trecr-restart ck && : >awake && step="its end" && all_in_a_round 3 && finish_job 3 ready
tell "operations on windows are completed while all ranks are stopped, and locks stay"
kill_all

# The library waits for a rank that must not be stopped therefore, and that sleeps.
job_arena flushing
flushing="the ranks do not come to rest together .*rank 0 waits in MPI_Win_unlock for any rank"
step=start && ranks 2 "${run[@]}" -- "$windows" flushing && all_asleep 2
like "$(restless "$flushing")" "$flushing" "a rank that completes operations on a window is named"
step="going on" && : >awake && all_in_a_round 2 && step="next checkpoint" && job_checkpoint && kill_all &&
	step=restart && restart_job 2 && step="its end" && finish_job 2
tell "and is saved when the other one has woken up"
kill_all
unset PROGRAM

# At some moment of a checkpoint. The launcher ends the others.
bad=
for i in 1 2 3 4 5 6; do
	job_arena killed
	start_job 3 && job_checkpoint || bad+=" $i:start"
	trecr-ckpt -t 30 ck >second 2>>ckpt.err &
	request=$!
	pause "0.0$((i * 12 + 10))"
	kill -KILL "$(supervisor_of $((i % 3)))"
	wait $request
	kill_all
	restart_job 3 && finish_job 3 || bad+=" $i:restart"
	kill_all
done
is "$bad" "" "a supervisor is killed at some moments of a checkpoint" || explain out.* err.*
done_testing
