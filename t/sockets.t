#!/bin/bash
# Sockets inside the tree: what is under way in them, their names, options and other ends.
. "$(dirname "$0")/lib.sh"

for v in ${SOCKET_VICTIMS:-unix_pairs unix_rights unix_names sock_options tcp_loopback shared_ports udp sockets_tree sockets_busy unix_backlog backlogs multipath}; do
	cycle $v
done
# Ended without a checkpoint's doing, the program leaves connections behind that the kernel
# remembers for a while; those of its first life, and of the second.
crashed() {
	checkpoint && step="a crash" && {
		sweep >/dev/null
		restart_detached
	} && step="another one" && {
		sweep >/dev/null
		restart_here
	} && step="going on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok
}
[ -n "${SOCKET_VICTIMS:-}" ] || for v in tcp_loopback tcp_orphans unix_names unix_rights; do
	scenario "$v: restarted right after two crashes" crashed "$victim/$v"
done

# The end that closes first is remembered: now that of the parent, now that of its child.
crashed_in_turn() {
	checkpoint && step="a crash" && {
		kill -KILL "$(program_of "$sup")"
		await -t 30 -p "$sup" 2>>await.err
		sweep >/dev/null
		restart_detached
	} && step="another one" && {
		local parent
		parent=$(program_of "$sup")
		kill -KILL "$(cat "/proc/$parent/task/$parent/children")"
		sweep >/dev/null
		restart_here
	} && step="going on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok
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
		step="going on" && kill -USR1 "$sup" && await -t 30 -p "$sup" 2>>await.err &&
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

# Nobody can listen there then who has not said so beforehand (SO_REUSEADDR), for a minute.
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	arena remembered
	launch python3 -c '
import os, signal, socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", int(sys.argv[1])))
listening.listen()
if not os.fork():
    client = socket.create_connection(listening.getsockname())
    listening.close()
    sys.exit(client.recv(1) != b"x")
connection, _ = listening.accept()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
connection.send(b"x")
if not os.wait()[1]:
    print("ok", flush=True)' "$(free_port)" && checkpoint
	kill -KILL "$(program_of "$sup")"
	await -t 30 -p "$sup" 2>>await.err
	sweep >/dev/null
	trecr-restart ck </dev/null >waiting.out 2>waiting.err &
	await -t 60 -p $! waiting.err 'waiting: .*TIME_WAIT' >/dev/null 2>>await.err
	result $? "a restart waits for a port that the kernel keeps, and says so" || explain
	sup=$!
	not_ok "it answers a checkpoint meanwhile" quiet checkpoint
	like "$(cat ckpt.err)" "the program is not back yet.*TIME_WAIT" "with the reason" || explain
	kill -TERM $!
	await -t 20 -p $! 2>>await.err
	wait $!
	is "$? $(tail -n 1 waiting.err | grep -c "^trecr-restart: cannot ")" "125 1" "it can be ended meanwhile" || explain waiting.err
	restart_detached && finish && said_ok
	result $? "and has it in the end" || explain
	is "$(grep -c waiting restart.err)" 1 "said once" || explain
	sweep >/dev/null
fi
done_testing
