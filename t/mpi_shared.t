#!/bin/bash
# Memory that ranks of MPI share in windows (MPI_Win_allocate_shared): saved in parts, one in each rank's image, and
# shared again by the ranks that are brought back.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
. "$top/t/mpi_job_lib.sh"

build_programs mpi_shared mpi_shared_io
# shellcheck disable=SC2034 # of mpi_job_lib.sh
PROGRAM=$PWD/mpi_shared
requests=$PWD/mpi_shared_io

for count in $(sizes 2 5); do
	job_arena "$count"
	three_times $count
	tell "$count ranks that share memory, three times saved, killed and brought back"
	is "$(find /dev/shm -maxdepth 1 -name 'trecr-window-*')" "" "and leave no names"
	kill_all
done

# Nothing but the mappings leads to the memory.
job_arena mappings
! am_root || run=(setpriv "--bounding-set=-checkpoint_restore,-sys_admin" "${run[@]}")
three_times 3
tell "3 ranks that share memory, saved without privileges"
is "$(($(du -sm ck | cut -f1) < 200))" 1 "and of memory that is not touched nothing is saved"
run=(trecr-run -d ck --gpu=off)
kill_all

# Of 1 GiB for each rank few pages are there, before and behind a restart (mpi_shared.c sees to that).
job_arena sparse
step=start && start_job 2 && step=checkpoint && job_checkpoint
tell "windows of which most is untouched are saved"
is "$(($(du -sm ck | cut -f1) < 100))" 1 "and take little room"
kill_all

# A page is in the image of one rank only: the second one has hardly any.
job_arena parts
step=start && start_job 3 && step=checkpoint && job_checkpoint
mapfile -t sizes < <(cd ck/ckpt-000001 && stat -c %s rank-{0,1,2}/job)
is "$((sizes[1] * 2 < sizes[0] && sizes[1] * 2 < sizes[2]))" 1 "each rank has its part in its image" || explain out.*
kill_all

# Only children of some ranks have the memory any more. The checkpoint tries a restart, and ends all.
job_arena freed
step=start && ranks 3 "${run[@]}" -- "$PROGRAM" freed && all_asleep 3 && step=checkpoint && job_checkpoint -s &&
	step="its first end" && await -t 60 -p $launcher 2>>await.err && step=restart && ranks 3 trecr-restart ck &&
	: >awake && step="its end" && finish_job 3
tell "children of ranks share memory of a window that has been freed"
kill_all

# Rank 0 calls nothing of MPI until it sees what another one has put.
job_arena polling
step=start && ranks 2 "${run[@]}" -- "$PROGRAM" polling && all_asleep 2 && step=checkpoint && job_checkpoint &&
	kill_all && step=restart && ranks 2 trecr-restart ck && : >awake && step="its end" && all_in_a_round 2 && finish_job 2 ready
tell "what is put into memory that ranks share comes without a call of the rank whose memory it is"
kill_all

# Several threads of a rank put numbers of different sizes.
job_arena threads
step=start && start_job 2 threads && step="its end" && finish_job 2 ready
tell "threads put into memory that ranks share, and get from it"
kill_all

# A /dev/shm that is on a disk.
job_arena disk
mkdir disk
if [ "$(stat -f -c %T disk)" = tmpfs ]; then
	skip "a /dev/shm on a disk" "the tests are in memory"
elif ! am_root; then
	skip "a /dev/shm on a disk" "needs root"
else
	mount --bind disk /dev/shm
	ranks 2 "${run[@]}" -- "$requests" nothing 0 && all_asleep 2
	like "$(trecr-ckpt -t 60 ck 2>&1)" 'MPI_Win_allocate_shared' "where /dev/shm is on a disk, a checkpoint is refused"
	is "$(find /dev/shm -maxdepth 1 -name 'trecr-window-*')" "" "and no file is left there"
	: >awake && launched_well && [ "$(cat out.*)" = $'ok\nok' ]
	tell "and the ranks share memory all the same"
	kill_all
	umount /dev/shm
fi

# At some moment of it; the ranks free the memory at once.
bad=
for i in 1 2 3 4 5 6; do
	job_arena given-up
	ranks 3 "${run[@]}" -- "$PROGRAM" asleep && all_asleep 3 || bad+=" $i:start"
	trecr-ckpt -t 30 ck >/dev/null 2>>ckpt.err &
	request=$!
	pause "0.0$((i * 12 + 10))"
	kill -KILL $request 2>/dev/null
	: >awake
	wait $request
	launched_well && [ "$(cat out.* | sort | uniq -c | tr -s ' \n' ' ')" = " 3 ok " ] || bad+=" $i:end"
	kill_all
done
is "$bad" "" "a checkpoint is given up, and the memory freed" || explain out.* err.*

# Requests of one rank read into pages that another one saves, and fills at a restart. (Before Linux 6.12 they are
# refused.)
kinds=("reads numbers" "timer 4")
[ "$(printf '6.12\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.12 ] || {
	skip "requests of io_uring into the part of another rank" "rings are refused before Linux 6.12"
	kinds=()
}
for kind in "${kinds[@]}"; do
	job_arena "${kind% *}"
	begin=$(date +%s) bad=
	# shellcheck disable=SC2086
	ranks 2 "${run[@]}" -- "$requests" $kind && all_asleep 2 || bad=start
	if cat out.* 2>&1 | grep -q skip; then
		skip "requests of io_uring into the part of another rank: ${kind% *}" "no io_uring here"
		kill_all
		continue
	fi
	# It is refused where so many requests take more than seconds.
	for i in 1 2 3 4 5 refused; do
		[ "$bad" ] || job_checkpoint && break
	done
	[ $i != refused ] || bad=checkpoint
	kill_all
	# The timer fires while nothing runs.
	while [ "${kind% *}" = timer ] && (($(date +%s) < begin + 6)); do pause 0.1; done
	[ "$bad" ] || { ranks 2 trecr-restart ck && : >awake && launched_well && [ "$(cat out.*)" = $'ok\nok' ]; } || bad+=" restart"
	is "$bad" "" "requests of io_uring into the part of another rank: ${kind% *}" || explain out.* err.*
	kill_all
done

# Two nodes, which have no memory in common.
nodes() {
	job_arena nodes
	step=start && start_job 2 && step=checkpoint && job_checkpoint
	kill_all
	export MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self
	# shellcheck disable=SC2016 # of the inner shell
	ranks 1 trecr-restart ck : -n 1 unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm && exec trecr-restart ck'
	unset MPIR_CVAR_NOLOCAL UCX_TLS
	await -t 60 -p $launcher 2>>await.err
	like "$(cat err.*)" 'cannot restart ck: .*ranks that share the memory of a window .* cannot share it here' \
		"on two nodes they are not brought back"
	is "$(cat err.* | grep -c 'cannot restart')" 1 "which one rank says"
	kill_all
	restart_job 2 && finish_job 2
	tell "and on one they are"
	kill_all
}
if am_root; then
	nodes
else
	skip "on two nodes they are not brought back" "needs root"
fi

# The driver has it as well.
job_arena registered
run=(trecr-run -d ck --gpu=on)
export LD_LIBRARY_PATH=$build/t/sim
start_registered() {
	rm -f go
	ranks 2 "${run[@]}" -- "$PROGRAM" registered && all_in_a_round 2
}
step=start && start_registered && for round in first second; do
		step="$round checkpoint" && job_checkpoint && step="going on" && all_in_a_round 2 &&
			kill_all && step="$round restart" && restart_job 2 || break
	done && [ $round = second ] && step="its end" && finish_job 2
tell "memory that ranks share and that is registered with CUDA"
unset LD_LIBRARY_PATH
kill_all
done_testing
