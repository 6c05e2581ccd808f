#!/bin/bash
# Sockets inside the tree: what is under way in them, their names, options and other ends.
. "$(dirname "$0")/lib.sh"

for v in ${SOCKET_VICTIMS:-unix_pairs unix_rights unix_names unix_relative unix_relative_open sock_options tcp_loopback shared_ports udp udp_shared multicast sockets_tree sockets_busy unix_backlog backlogs multipath}; do
	cycle $v
done
# Ended without a checkpoint's doing, the program leaves connections behind that the kernel
# remembers for a while: connections of its first life, and of the second.
crashed() {
	checkpoint && step="a crash" && {
		sweep >/dev/null
		restart_detached
	} && step="another one" && {
		sweep >/dev/null
		restart_here
	} && step="running on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok
}
[ -n "${SOCKET_VICTIMS:-}" ] || for v in tcp_loopback tcp_orphans unix_names unix_rights; do
	scenario "$v: restarted right after two crashes" crashed "$victim/$v"
done

# TCP has no SO_PEEK_OFF before Linux 6.9: here the kernel says so of all sockets.
without_offset() {
	arena without_offset
	confine --no-tcp-peek-offset trecr-run -d ck -- "$victim/tcp_loopback" </dev/null >out 2>err &
	sup=$!
	if ! await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
		skip "unread bytes of TCP without SO_PEEK_OFF" "no seccomp filters"
		return
	fi
	ok "unread bytes of TCP are saved without SO_PEEK_OFF" checkpoint || explain
	freeze_away
	restart_here
	finish
	is "$status" 0 "and are read after the restart" || explain
	sweep >/dev/null
}
[ -n "${SOCKET_VICTIMS:-}" ] || without_offset

# The end that closes first is remembered: now the parent's, now its child's.
crash_in_turn() {
	checkpoint && step="a crash" && {
		kill -KILL "$(program_of "$sup")"
		await -t 60 -p "$sup" 2>>await.err
		sweep >/dev/null
		restart_detached
	} && step="another one" && {
		local parent
		parent=$(program_of "$sup")
		kill -KILL "$(cat "/proc/$parent/task/$parent/children")"
		sweep >/dev/null
		restart_here
	}
}
crashed_in_turn() {
	crash_in_turn && step="running on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok
}
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	scenario "TCP between processes: restarted right after two crashes" crashed_in_turn python3 -c '
import os, signal, socket
listening = socket.socket()
listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listening.bind(("127.0.0.1", 0))
listening.listen()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if not os.fork():
    clients = [socket.create_connection(listening.getsockname()) for _ in range(4)]
    listening.close()
    os._exit(any(c.recv(1) != b"x" for c in clients))
connections = [listening.accept()[0] for _ in range(4)]
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
for c in connections:
    c.send(b"x")
if not os.wait()[1]:
    print("ok", flush=True)'
fi

# The kernel frees a socket late that is in its own queue.
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	scenario "names that are freed late: restarted right after two crashes" crashed python3 -c '
import array, os, signal, socket
listening = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for s, name in zip(listening, ("\0trecr-late-%d" % os.getpid(), os.path.abspath("late"))):
    s.bind(name)
    s.listen()
a, b = socket.socketpair()
b.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i",
    [s.fileno() for s in [a, b] + listening]))])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
for s in listening:
    socket.socket(socket.AF_UNIX).connect(s.getsockname())
print("ok", flush=True)'
fi

# Another user connects to a socket whose file is hidden for the moment, whatever the umask.
strict() {
	freeze_away && step=restart && (umask 077 && restart_detached) && sup=$(cat restart.out) &&
		step="running on" && kill -USR1 "$sup" && await -t 60 -p "$sup" 2>>await.err &&
		step="its own checks" && said_ok
}
if have python3 && am_root && [ -z "${SOCKET_VICTIMS:-}" ]; then
	scenario "a socket without a file, and another user: restarted with a strict umask" strict \
		python3 -c '
import os, signal, socket
os.umask(0)
listening = socket.socket(socket.AF_UNIX)
listening.bind("/tmp/trecr-strict-%d" % os.getpid())
listening.listen()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if not os.fork():
    os.setresuid(64321, 64321, 64321)
    client = socket.socket(socket.AF_UNIX)
    client.connect(listening.getsockname())
    listening.close()
    client.send(b"question")
    os._exit(client.recv(9) != b"answer")
connection, _ = listening.accept()
os.unlink(listening.getsockname())
listening.close()
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
connection.recv(9) == b"question" and connection.send(b"answer")
if not os.wait()[1]:
    print("ok", flush=True)'
fi

# A program that ran on after the checkpoint has removed the directory of its socket.
removed() {
	step=checkpoint && checkpoint && step="the end" && kill -USR1 "$(program_of "$sup")" &&
		await -t 60 -p "$sup" && [ ! -e dir ] && step=restart && restart_here &&
		step="running on" && finish && step="its own checks" && [ "$status" = 0 ] &&
		said_ok && [ ! -e dir ]
}
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	scenario "the directory of a socket has been removed: it is made again" removed python3 -c '
import os, shutil, signal, socket
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.makedirs("dir/below", 0o700)
listening = socket.socket(socket.AF_UNIX)
listening.bind(os.path.abspath("dir/below/name"))
listening.listen()
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
client = socket.socket(socket.AF_UNIX)
client.connect(os.path.abspath("dir/below/name"))
connection, _ = listening.accept()
client.send(b"question")
assert connection.recv(9) == b"question" and os.stat("dir/below").st_mode & 0o777 == 0o700
shutil.rmtree("dir")
print("ok", flush=True)'
fi

# A port with a connection that no process has open any more on this side, and whose other end closes late.
closes_late() {
	local other
	checkpoint -s && step="the end" && await -t 60 -p "$sup" 2>>await.err && {
		sweep >/dev/null
		step="a connection" && mkfifo close && rm -f closing
		python3 -c '
import socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", int(open("port").read())))
listening.listen()
client = socket.create_connection(listening.getsockname())
listening.accept()[0].close()
listening.close()
open("closing", "w").write("yes\n")
open("close").read()' 251>&- &
		other=$!
		await -t 60 -p $other closing yes >/dev/null 2>>await.err
	} && step="a restart that waits" && {
		restart_detached &
		await -t 60 restart.err 'waiting: .*a connection that has ended' >/dev/null 2>>await.err &&
			step="a restart" && echo >close && wait $other && wait $! && sup=$(cat pidfile)
	} && step="running on" && finish && said_ok
}
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	scenario "a port of a connection that closes late: it is waited for" closes_late python3 -c '
import signal, socket
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
open("port", "w").write(str(listening.getsockname()[1]))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
print("ok", flush=True)'
fi

# Ports that for a minute can be bound only by a program that has set SO_REUSEADDR beforehand: the ports of
# the ends that close first, here a server's port, and the port of a client that has bound it.
past_ports() { # FAMILY ADDRESS
	crash_in_turn && step="waiting for no port" && ! grep waiting restart.err && step="running on" && finish &&
		step="its own checks" && [ "$status" = 0 ] && said_ok
}
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	for family in "AF_INET 127.0.0.1" "AF_INET6 ::1" "AF_INET6 ::ffff:127.0.0.1"; do
		[ -e /proc/net/if_inet6 ] || [ "${family% *}" = AF_INET ] || continue
		# shellcheck disable=SC2086
		scenario "ports without SO_REUSEADDR, $family: restarted right after two crashes" past_ports \
			python3 -c '
import os, signal, socket, sys
family, address = getattr(socket, sys.argv[1]), sys.argv[2]
listening = socket.socket(family)
listening.bind((address, 0))
listening.listen()
if not os.fork():
    clients = [socket.socket(family) for _ in range(3)]
    clients[0].bind((address, 0))
    for c in clients:
        c.connect(listening.getsockname())
    listening.close()
    os._exit(any(c.recv(1) != b"x" for c in clients))
connections = [listening.accept()[0] for _ in range(3)]
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
for c in connections:
    c.send(b"x")
if not os.wait()[1]:
    print("ok", flush=True)' $family
	done
fi
done_testing
