#!/bin/bash
# MPI programs that others have written, or that reach MPI through a library of others, each rank under a trecr-run of
# its own with MPI's library in the lower half: saved, killed and brought back three times.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
. "$top/t/mpi_job_lib.sh"

export UCX_LOG_LEVEL=error # of messages that are left over at the end it warns on standard output, natively, too

if have caf.mpich && caf.mpich -O1 -o images "$top/t/application/coarray_images.f90" 2>compiler.err; then
	finish_job() { # COUNT
		: >go
		launched_well && [ "$(sort out.* | uniq -c | tr -s " \n" " ")" = " $1 ok " ]
	}
	PROGRAM=$PWD/images
	for count in 2 3; do
		job_arena images-$count
		three_times $count
		tell "Coarray Fortran, $count images, three times saved, killed and brought back"
		kill_all
	done
else
	skip "Coarray Fortran" "no OpenCoarrays for MPICH"
fi

# ---- with Open MPI's library ----

# As many ranks as are asked for, on however few processors. Its sockets have names of limited length.
export OMPI_MCA_rmaps_base_oversubscribe=1 TMPDIR=$scratch
# Of a killed job its shared memory is left: for a user, who has no /dev/shm apart, where the test removes it.
[ -n "${TRECR_APART:-}" ] || export OMPI_MCA_btl_vader_backing_directory=$scratch
! am_root || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mrbayes=/usr/lib/mrbayes-mpi/mb-mpi
primates=/usr/share/doc/mrbayes/examples/primates.nex

ranks() { # COUNT COMMAND...
	mpirun.openmpi -n "$@" </dev/null >>out 2>>err &
	launcher=$!
}

# How many lines each file of samples has at least.
sampled() {
	wc -l primates.nex.run?.[pt] 2>/dev/null | sed '/total$/d' | sort -n | sed -n 's/^ *\([0-9]*\) .*/\1/p;q'
}

sampled_more_than() { # LINES
	local i
	for ((i = 0; i < 3000; i++)); do
		[ "0$(sampled)" -le "$1" ] || return 0
		pause 0.02
	done
	return 1
}

# The first lines of each file; a run has a number of its own.
samples() { # LINES
	head -qn "$1" primates.nex.run?.[pt] | sed 's/ID: [0-9]*//'
}

# It samples for ever, so it is always under way, however fast the machine is.
mrbayes_three_times() {
	local round lines=20 # which are more than files begin with
	step=start && ranks 2 trecr-run -d ck --gpu=off --mpi=lower -- $mrbayes in &&
		for round in first second third; do
			step="up to the $round checkpoint" && sampled_more_than "$lines" && step="$round checkpoint" && job_checkpoint &&
				kill_all && lines=$(sampled) && step="$round restart" && ranks 2 trecr-restart ck || break
		done && [ "$round" = third ] && step="going on" && sampled_more_than "$lines" && kill_all &&
		lines=$(sampled) && samples "$lines" >restarted && rm primates.nex.* &&
		step="natively" && ranks 2 $mrbayes in && sampled_more_than "$lines" && kill_all &&
		step="comparing" && samples "$lines" | diff - restarted >differences
}

if have mpirun.openmpi && [ -x $mrbayes ] && [ -e $primates ]; then
	job_arena mrbayes
	cp $primates .
	cat >in <<-'IN'
		#NEXUS
		begin mrbayes;
		set autoclose=yes nowarn=yes seed=7 swapseed=9;
		execute primates.nex;
		lset nst=6 rates=gamma;
		mcmc ngen=1000000000 samplefreq=10 printfreq=1000 nchains=2 nruns=2 checkpoint=no;
		end;
	IN
	mrbayes_three_times
	tell "MrBayes, two ranks, samples the same when it is three times saved, killed and brought back"
	[ ! -s differences ] || diag "$(head -n 20 differences | cut -c1-300)"
	kill_all
else
	skip "MrBayes" "no MrBayes for Open MPI"
fi
done_testing
