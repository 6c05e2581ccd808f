# slurm_lib.sh - two nodes, n1 (where the test runs) and n2, and a Slurm of theirs, all of whose files are in
# the scratch directory. To be sourced behind job_lib.sh, in mount, network and UTS namespaces.
# shellcheck shell=bash

daemons=()

# A node is a network namespace with a name, and with a folder of its own for control sockets.
nodes_up() {
	local sockets
	sockets=/tmp/trecr-$(id -u)
	[ -d "$sockets" ] || mkdir -m 700 "$sockets"
	mount -t tmpfs -o mode=700 sockets "$sockets" && loopback_up && hostname n1 || return
	printf '%s\n' '127.0.0.1 localhost' '10.213.8.1 n1' '10.213.8.2 n2' >"$scratch/hosts"
	mount --bind "$scratch/hosts" /etc/hosts
	unshare -mnu sh -c 'mount -t tmpfs -o mode=700 sockets "$0" && hostname n2 && echo up &&
		exec sleep 1000' "$sockets" >"$scratch/node.up" 2>"$scratch/node.err" &
	node=$!
	await -t 60 -p $node "$scratch/node.up" '^up$' >/dev/null 2>>"$scratch/node.err" &&
		ip link add tr1 type veth peer name tr2 netns $node 2>>"$scratch/node.err" || return
	ip addr add 10.213.8.1/24 dev tr1
	ip link set tr1 up
	nsenter -t $node -n sh -c 'ip link set lo up
		ip addr add 10.213.8.2/24 dev tr2
		ip link set tr2 up'
	commands
}

# What the scripts call: MPICH's mpiexec, which reaches n2 by ssh, and PBS's qsub.
commands() {
	mkdir "$scratch/bin"
	cat >"$scratch/bin/mpiexec" <<-'END'
		#!/bin/sh
		exec mpiexec.mpich "$@"
	END
	cat >"$scratch/bin/ssh" <<-END
		#!/bin/sh
		while [ "\${1#-}" != "\$1" ]; do shift; done
		host=\$1
		shift
		[ "\$host" = n2 ] || exec sh -c "\$*"
		exec nsenter -t $node -n -m -u sh -c "\$*"
	END
	cat >"$scratch/bin/qsub" <<-'END'
		#!/bin/sh
		echo "$@" >qsub.args
	END
	chmod +x "$scratch"/bin/*
	PATH=$scratch/bin:$PATH
}

# Requeued jobs start when start_now says so.
slurm_conf() {
	cat <<-END
		ClusterName=trecr
		SlurmctldHost=n1(10.213.8.1)
		SlurmUser=root
		AuthType=auth/none
		CredType=cred/none
		AuthInfo=cred_expire=120
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		MpiDefault=none
		MailProg=/bin/true
		ReturnToService=2
		KillWait=3
		SlurmctldPidFile=$scratch/slurmctld.pid
		SlurmdPidFile=$scratch/slurmd-%n.pid
		SlurmdSpoolDir=$scratch/spool-%n
		StateSaveLocation=$scratch/state
		SlurmctldLogFile=$scratch/slurmctld.log
		SlurmdLogFile=$scratch/slurmd-%n.log
		SlurmdParameters=config_overrides
		SchedulerParameters=sched_interval=1,batch_sched_delay=0
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		NodeName=n1 NodeAddr=10.213.8.1 CPUs=64
		NodeName=n2 NodeAddr=10.213.8.2 CPUs=64
		PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
	END
}

slurm_up() {
	local i
	slurm_conf >"$scratch/slurm.conf"
	mkdir "$scratch"/state "$scratch"/spool-n{1,2}
	export SLURM_CONF=$scratch/slurm.conf
	slurmctld -D -c >"$scratch/slurmctld.out" 2>&1 &
	daemons+=($!)
	slurmd -D -N n1 >"$scratch/slurmd-n1.out" 2>&1 &
	daemons+=($!)
	nsenter -t $node -n -m -u slurmd -D -N n2 >"$scratch/slurmd-n2.out" 2>&1 &
	daemons+=($!)
	mkfifo pause
	for ((i = 0; i < 300; i++)); do
		[ "$(sinfo -h -t idle -o %D 2>>sinfo.err)" != 2 ] || return 0
		pause 0.1
	done
	return 1
}

slurm_down() {
	kill "${daemons[@]}" "$node"
	wait "${daemons[@]}" "$node" 2>/dev/null
}

slurm_explain() {
	local f
	for f in "$scratch"/slurm*.out "$scratch"/slurm*.log; do
		diag "$(tail -n 5 "$f" | cut -c1-200 | sed "s|^|${f##*/}: |")"
	done
}

slurm_result() { # NAME
	result $? "$1" || {
		diag "failed at: ${step:-}"
		explain slurm-*.out sbatch.err
		slurm_explain
	}
}

# ---- jobs ----

job_says() { # JOB KEY: its value
	scontrol -o show job "$1" 2>>scontrol.err | sed -n "s/.*\\<$2=\\([^ ]*\\).*/\\1/p"
}

await_job() { # JOB KEY VALUE
	local i
	for ((i = 0; i < 600; i++)); do
		[ "$(job_says "$1" "$2")" != "$3" ] || return 0
		pause 0.1
	done
	return 1
}

requeued() { # JOB: until it waits to be started again
	await_job "$1" Restarts 1 && await_job "$1" JobState PENDING
}

# Slurm leaves two minutes between the end of a job and its next start.
start_now() { # JOB
	scontrol update "job=$1" StartTime=now 2>>scontrol.err
}

completed() { # JOB
	await_job "$1" JobState COMPLETED
}

await_file() {
	local i
	for ((i = 0; i < 600; i++)); do
		[ ! -e "$1" ] || return 0
		pause 0.1
	done
	return 1
}

await_other() { # LINK TARGET: until it leads elsewhere
	local i
	for ((i = 0; i < 1200; i++)); do
		[ "$(readlink "$1")" = "$2" ] || return 0
		pause 0.05
	done
	return 1
}
