#!/bin/bash
# Every script of trecr-slurm(7) does what it is for, on two nodes with a Slurm of their own: the program is
# saved by the signal, its job is requeued, and the program continues where it was.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
apart -mnui
am_root || skip_all "needs root"
have ip || skip_all "there is no ip (iproute2)"
have slurmctld && have slurmd && have sbatch || skip_all "Slurm is not installed"
. "$top/t/slurm_lib.sh"

nodes_up || skip_all "no second node: $(cat "$scratch/node.err")"
slurm_up || {
	slurm_explain
	skip_all "Slurm does not start"
}

# ---- the page ----

page=$top/man/trecr-slurm.7

script() { # NAME: as a reader of the page would copy it
	sed -n "/^\\.\\\\\" script: $1\$/,/^\\.fi\$/p" "$page" |
		sed -e '1,2d; $d' -e "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\e/\\\\/g"
}

tried=()
take_script() { # NAME: in a directory of its own
	arena "${1%.*}"
	mkfifo pause
	script "$1" >"$1" && bash -n "$1" && tried+=("$1")
}

# Counts in memory; round.0 says how far it is. In the directory of an array's task, when it is one.
counter() {
	cat >solver <<-'END'
		#!/bin/bash
		[ $# = 0 ] || { mkdir "task.$1" && cd "task.$1"; } || exit
		for ((n = 1; n < 20; n++)); do ln -sfn "$n" round.0; done
		echo ready
		while [ ! -e "$OLDPWD/go" ] && [ ! -e go ]; do
			ln -sfn "$((++n))" round.0 && sleep 0.05 # as programs may
		done
		echo ok
	END
	chmod +x solver
}

# Ranks that find out when they are not of one moment.
ranks() {
	cat >solver <<-'END'
		#!/bin/sh
		export PMI_RANK="${PMI_RANK:-$SLURM_PROCID}" PMI_SIZE="${PMI_SIZE:-$SLURM_NTASKS}"
		exec "$LOCKSTEP"
	END
	chmod +x solver
}
export LOCKSTEP=$victim/lockstep

messages() {
	mpicc.mpich -O1 -w -o solver "$top/t/application/messages.c" >cc.log 2>&1
}

submit() { # NAME: id is its job's
	job=$(sbatch --parsable "$1" 2>>sbatch.err) && id=$job
}

# ---- one program, its tasks, its array ----

# All jobs are under way together: submitted before the first is waited for, and likewise warned.

declare -A jobs # by the names of their scripts: DIRECTORY:ID
begin() { # SCRIPT SOLVER
	take_script "$1.sbatch" && "$2" && submit "$1.sbatch" && jobs[$1]=$PWD:$id
	slurm_result "$1.sbatch is accepted"
}

# Into its directory; out is what it writes.
enter() { # SCRIPT
	[ -n "${jobs[$1]:-}" ] || return
	cd "${jobs[$1]%:*}" || exit 1
	id=${jobs[$1]##*:}
	out=slurm-$id.out
}

ready() { # OUT
	await_file "$1" && await -t 60 "$1" '^ready$' >/dev/null 2>>await.err
}

# By the warning that Slurm gives before the time is over.
warn() { # SCRIPT [TASK]
	enter "$1" && ready "slurm-$id${2:+_$2}.out" && scancel --signal=USR1 --batch "$id${2:+_$2}"
}

# Resumes in the round that it was saved in.
continued() { # JOB [DIRECTORY]
	local link=${2:-.}/round.0 round
	step="to be saved" && requeued "$1" && round=$(readlink "$link") &&
		step="to continue" && start_now "$1" && await_other "$link" "$round" &&
		[ "$(readlink "$link")" -gt "$round" ]
}

ended_well() { # JOB OUT TASKS
	step="its end" && completed "$1" && [ "$(grep -c '^ready$' "$2") $(grep -c '^ok$' "$2")" = "$3 $3" ]
}

through() { # TASKS
	continued "$id" && : >go && ended_well "$id" "$out" "$1"
}

begin preempt ranks
begin one counter
begin nodes ranks
begin array counter
! have mpiexec.mpich || begin mpiexec ranks
! have mpicc.mpich || begin mpi messages

# By the signal that is sent to what is preempted.
step="to be saved" && enter preempt && ready "$out" && scancel --signal=TERM "$id" &&
	await_file "saved.$id/latest" && step="to run on" && await_other round.0 "$(readlink round.0)"
slurm_result "preempt.sbatch: a signal to all processes of all tasks makes a checkpoint"
scontrol requeue "$id"

step=
warn one && warn nodes && warn array 2
slurm_result "jobs are warned"
! have mpiexec.mpich || warn mpiexec
! have mpicc.mpich || warn mpi

enter one && through 1 && grep -qx 'start number 2' "$out"
slurm_result "one.sbatch: a program is saved, requeued, and continues"

enter nodes && through 4 &&
	[ "$(trecr-inspect --json saved.* | grep -o '"hostname": "[^"]*"' | sort -u | wc -l)" = 2 ]
slurm_result "nodes.sbatch: so are the tasks of two nodes"

enter array && ready "slurm-${id}_1.out" && ready "slurm-${id}_3.out" && continued "${id}_2" task.2 &&
	: >go && ended_well "${id}_2" "slurm-${id}_2.out" 1 && ended_well "${id}_1" "slurm-${id}_1.out" 1 &&
	ended_well "${id}_3" "slurm-${id}_3.out" 1
slurm_result "array.sbatch: one task of an array is requeued, the others run on"
is "$(echo saved.*)" "saved.${id}.2" "each has a directory of its own"

if enter mpiexec; then
	through 4
	slurm_result "mpiexec.sbatch: and the tasks that mpiexec starts"
else
	skip "mpiexec.sbatch" "MPICH is not installed"
fi

if enter mpi; then
	step="to be saved" && requeued "$id" && : >go && start_now "$id" && step="its end" &&
		completed "$id" && grep -q '^4 ranks, ' "$out"
	slurm_result "mpi.sbatch: an MPI program on one node"
else
	skip "mpi.sbatch" "no MPICH to build programs with"
fi

# What ran between the checkpoint and the end has gone on with its rounds.
enter preempt && step="to be requeued" && requeued "$id" && rm round.* && step="to continue" && start_now "$id" &&
	await_other round.0 '' && : >go && ended_well "$id" "$out" 2
slurm_result "and is requeued"

# ---- without Slurm ----

if have mpiexec.mpich; then
	take_script solver.pbs && ranks
	printf '%s\n' n1 n1 n2 n2 >nodefile
	pbs() { # NUMBER [VARIABLE]
		env PBS_O_WORKDIR="$PWD" PBS_JOBID="$1.n1" PBS_NODEFILE="$PWD/nodefile" ${2:+"$2"} \
			bash solver.pbs </dev/null >>out 2>>err &
		pid=$!
	}
	step=ready && pbs 1 && await -t 60 -p $pid out '^ready$' >/dev/null 2>>await.err &&
		step="to be saved" && kill -USR1 $pid && await -t 60 -p $pid &&
		[ "$(cat qsub.args)" = "-v saved=$PWD/saved.1.n1 solver.pbs" ] &&
		step="to continue" && n=$(readlink round.0) && pbs 2 "saved=$PWD/saved.1.n1" &&
		await_other round.0 "$n" && step="its end" && : >go && await -t 60 -p $pid && wait $pid &&
		[ "$(grep -c '^ready$' out) $(grep -c '^ok$' out)" = "4 4" ]
	slurm_result "solver.pbs: is saved and submits the next job, which continues"

	take_script hosts.sh && ranks
	printf '%s\n' n1:2 n2:2 >hosts
	hosts() {
		bash hosts.sh </dev/null >>out 2>>err &
		pid=$!
	}
	step=ready && hosts && await -t 60 -p $pid out '^ready$' >/dev/null 2>>await.err &&
		step="to be saved" && trecr-ckpt --stop saved >path 2>>ckpt.err && await -t 60 -p $pid &&
		step="to continue" && n=$(readlink round.0) && hosts && await_other round.0 "$n" &&
		step="its end" && : >go && await -t 60 -p $pid && wait $pid &&
		[ "$(grep -c '^ready$' out) $(grep -c '^ok$' out)" = "4 4" ]
	slurm_result "hosts.sh: with a file of hosts"
	is "$(printf '%s\n' "${tried[@]}" | sort)" "$(sed -n 's/^\.\\" script: //p' "$page" | sort)" \
		"these are all scripts of the page"
else
	skip "solver.pbs and hosts.sh" "MPICH is not installed"
fi

slurm_down
done_testing
