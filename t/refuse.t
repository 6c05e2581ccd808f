#!/bin/bash
# What cannot be brought back is refused at the checkpoint, by process, descriptor or region
# and reason, and the program runs on as if nothing had been. One row each: when support for
# something comes, its row goes and a victim takes its place.
. "$(dirname "$0")/lib.sh"

# Rows of t/victim/refuse_SUBJECT.c: kind | what the message must say beside the place
rows_of_files='
pipe|pipe
packets-and-bytes|both packets and plain bytes
lost-name|a name that cannot be found
one-shot|one-shot watch
perf-event|perf events
bpf|BPF
name-space|is not in this namespace
notify|F_NOTIFY
broken-lease|lease is being broken
mapped-lease|lease for writing on a file that is also mapped
pidfd-outside|pidfd of process 1
foreign-owner|F_SETOWN.* for process [0-9]+, which is not being saved
file-of-outside|belongs to process 1, which is not being saved
fifo-elsewhere|a name that cannot be found
fanotify|events that have not been read
fanotify-permissions|for permission events
epoll-of-thread|of a thread.s own
epoll-mounts|a file of /proc
mqueue|notification
landlock-rules|Landlock rule sets
mount-context|file system contexts
detached-mount|a mount that no path of the process leads to
detached-file|a mount that no path of the process leads to
detached-directory|a mount that no path of the process leads to
seccomp-listener|(seccomp listeners are not|under seccomp)
epoll-moved|a number that no longer refers to it
broken-write-lease|lease is being broken
'

rows_of_sockets='
outside|connected to .*127.0.0.1
raw|a packet or report waits in it
packet|a ring with the kernel.*without a ring, or close the socket
packet-type|SOCK_PACKET
packet-fanout|PACKET_FANOUT_CBPF
xdp|AF_XDP
vsock|AF_VSOCK
alg|AF_ALG
urgent|urgent
headers|further headers
headers6|further headers
filter|SO_ATTACH_BPF
unaccepted|waits to be accepted, and has sent
unaccepted-tcp|waits to be accepted, and has sent
unaccepted-full|waits to be accepted, and has sent
kernel-answer|an answer of the kernel waits
corked|MSG_MORE
datagram-from-outside|a datagram from 127.0.0.1:[0-9]+ waits in it
unix-outside|a socket of another program
zerocopy|MSG_ERRQUEUE
datagram-error|MSG_ERRQUEUE
socket-namespace|another network namespace
multipath|a connection of Multipath TCP
tcp-urgent|urgent
signed-packets|TCP_MD5SIG
'

rows_of_terminals='
terminal-external|EXTPROC
terminal-locked|TIOCSLCKTRMIOS
terminal-status|status in packet mode
terminal-console|/dev/tty.*terminals other than the standard streams
packet-status|status in packet mode
'

rows_of_memory='
secret-memory|memfd_secret
no-vdso|has no vdso, without which nothing can be run in it: it has unmapped it, as valgrind does .run the program without
sealed|sealed
aio-cut|AIO context .* has been cut
reserved-address|address range that trecr reserves
userfaultfd|userfault
device|(device|/dev/)
'

rows_of_process='
removed-root|root directory .* has been removed
clone-gap|cannot have created it
landlock|Landlock
traced|being traced by process
dispatch|dispatched
ldt|modify_ldt
thread-area|set_thread_area
thread-timer|CLOCK_THREAD_CPUTIME_ID
io-ports|ioperm
thread-undo|CLONE_SYSVSEM
thread-securebits|secure bits of its own
thread-privileges|NoNewPrivs of its own
shared-undo|share the semaphore changes
group-outside|is in process group [0-9]+, whose leader is not being saved
pid-namespace|namespace of its own .*start trecr-run inside of it
queued-signals|90000 signals are queued for it, .*--timeout
'

rows_of_threads='
shared-directory|share a working directory
removed-directory|the thread.s own .* has been removed
shared-descriptors|share descriptors that are not those of process
descriptor-kind|a thread.s own
ended-timer|for a thread that has ended
'

rows_of_uring='
waiting-thread|RECV with MSG_WAITALL
used-again|used again.*do without io_uring
lost-arguments|no longer in the program.s memory
counting|a time-out waits in it that counts
same-data|several have the same user_data
closed-file|descriptor [(][0-9]+[)] has been closed
changed|may have been changed
fifo|OPENAT.* does not end
old-several|several completions
message-ring|several completions
given-buffers|IOSQE_BUFFER_SELECT
ring-of-buffers|IOSQE_BUFFER_SELECT
buffers-of-one|IOSQE_BUFFER_SELECT
credentials|IORING_REGISTER_PERSONALITY
not-enabled|IORING_SETUP_R_DISABLED
restricted|restrictions
own-memory|IORING_SETUP_NO_MMAP.*do without io_uring
'

refused() {
	local place
	place=$(sed -n 1p out)
	inside=$(program_of "$sup")
	before=$(ls ck 2>/dev/null)
	# shellcheck disable=SC2086
	if checkpoint $allowed; then
		why="the checkpoint succeeded: $path"
		return 1
	fi
	message=$(told)
	why="message: $message"
	[ -z "$path" ] || return 1
	[[ $message =~ ^trecr-ckpt:\ cannot\ .*:\ .+ ]] || return 1
	[ "$(told | wc -l)" = 1 ] || return 1
	case $place in
	"process "*) [[ $message =~ (^|[^0-9])${place#process }([^0-9]|$) ]] || return 1 ;;
	*) [[ $message =~ process\ $inside([^0-9]|$) ]] || return 1 ;;
	esac
	case $place in
	"descriptor "*) [[ $message =~ $place([^0-9]|$) ]] || return 1 ;;
	"region "*) [[ $message =~ ${place#region } ]] || return 1 ;;
	esac
	[[ $message =~ $reason ]] || return 1
	why="something is left of the attempt: $(ls ck)"
	[ "$(ls ck 2>/dev/null | grep -v '^lock$')" = "$(grep -v '^lock$' <<<"$before")" ] || return 1
	why="the program did not run on"
	finish && [ "$status" = 0 ] && [ "$(tail -n 1 out)" = ok ]
}

# A server that is not in the tree, in a process group of its own, for one row.
start_server() {
	export OUTSIDE_PORT OUTSIDE_GROUP OUTSIDE_UNIX=$PWD/served
	set -m
	serve "" "$OUTSIDE_UNIX" >port &
	set +m
	OUTSIDE_GROUP=$!
	OUTSIDE_PORT=$(await -t 60 -p "$OUTSIDE_GROUP" port '^[0-9]+$')
}

# An external pipe for the row that wants one, at descriptor 9 of every victim's parent.
mkfifo "$scratch/outside"
exec 8<>"$scratch/outside"

# Root can save these: for all others they are rows.
am_root || rows_of_process+='seccomp|seccomp
undumpable|inaccessible .PR_SET_DUMPABLE.*only root
' rows_of_sockets+='relative-name|its name relative is not found .*CAP_NET_ADMIN.*absolute name
'

each_row() { # VICTIM, and rows from standard input
	local program=$1 kind reason
	while IFS='|' read -r kind reason; do
		[ -n "$kind" ] || continue
		arena "$kind"
		allowed=
		case $kind in
		*outside) start_server ;;
		queued-signals) allowed="-t 5" ;; # the kernel takes half a minute, or a minute
		esac
		why=
		started=
		if [ "$kind" = pipe ]; then
			# The writer is another process: a pipe between two programs.
			exec 9< <(exec 9<&-; read -r _ <&8)
			launch "$victim/$program" $kind 8<&- && started=1
			exec 9<&-
		else
			launch "$victim/$program" $kind 8<&- && started=1
		fi
		if [ -n "$started" ] && refused; then
			result 0 "$kind is refused, and the program runs on"
		elif [ -n "$skip_reason" ]; then
			skip "$kind is refused, and the program runs on" "$skip_reason"
		else
			result 1 "$kind is refused, and the program runs on"
			diag "$why"
			explain
		fi
		sweep >/dev/null
	done
}
each_row refuse_files <<<"$rows_of_files"
each_row refuse_sockets <<<"$rows_of_sockets"
each_row refuse_terminals <<<"$rows_of_terminals"
each_row refuse_memory <<<"$rows_of_memory"
each_row refuse_process <<<"$rows_of_process"
each_row refuse_threads <<<"$rows_of_threads"
each_row refuse_uring <<<"$rows_of_uring"
done_testing
