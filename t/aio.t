#!/bin/bash
# Contexts of asynchronous I/O (io_setup) keep their addresses and unread events; what is under way at
# a checkpoint and lengthens a file is waited for before the file's size is taken.
. "$(dirname "$0")/lib.sh"

apart -m
cycle aio
cycle aio eventfd

# Nothing tells whose requests a disk works at: a disk that is always busy, with what others want of it or
# with one request of the program's that does not end, is no reason to say that all have ended.
if [ -n "${TRECR_APART:-}" ] && have python3; then
	arena busy
	launch "$victim/aio"
	sed -E 's/^( *[0-9]+ +[0-9]+ +[^ ]+( +[0-9]+){8} +)[0-9]+/\11/' /proc/diskstats >stats
	echo '   8       0 sda 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1' >>stats
	device=$(stat -c '%Hd %Ld' .)
	echo "   $device disk 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1" >>stats
	ok "a disk that is always busy can be imitated" mount --bind stats /proc/diskstats
	not_ok "requests that may be under way are refused" checkpoint
	like "$(cat ckpt.err)" "requests of asynchronous I/O .* may be under way: the disks .* are busy" \
		"with the reason"
	umount /proc/diskstats
	rm ckpt.err
	ok "when the disk is at rest, the program is saved" checkpoint
	finish
	is "$status" 0 "and has not noticed"
	sweep >/dev/null
fi

# ---- a write under way ----

# Of the file systems that are usual, XFS lets a program run on while its write lengthens a file. Its
# device is a file of another file system, which is frozen so that the write does not end.
cat >"$scratch/append.py" <<'END'
import ctypes, mmap, os, select, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
libc = ctypes.CDLL(None, use_errno=True)
size = 1 << 16

class iocb(ctypes.Structure):
    _fields_ = [('data', ctypes.c_uint64), ('key', ctypes.c_uint64), ('opcode', ctypes.c_uint16),
        ('priority', ctypes.c_int16), ('file', ctypes.c_uint32), ('buffer', ctypes.c_uint64),
        ('bytes', ctypes.c_uint64), ('offset', ctypes.c_int64), ('reserved', ctypes.c_uint64),
        ('flags', ctypes.c_uint32), ('eventfd', ctypes.c_uint32)]

memory = mmap.mmap(-1, size)
memory.write(b'x' * size)
buffer = ctypes.addressof(ctypes.c_char.from_buffer(memory))
file = os.open('inner/file', os.O_RDWR | os.O_DIRECT)
context = ctypes.c_ulong()
assert libc.syscall(206, 8, ctypes.byref(context)) == 0 # io_setup
request = ctypes.pointer(iocb(opcode=1, file=file, buffer=buffer, bytes=size))
open('pid', 'w').write(str(os.getpid()))
while not os.path.exists('frozen'):
    select.select([], [], [], .01)
assert libc.syscall(209, context, ctypes.c_long(1), ctypes.byref(request)) == 1 # io_submit
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
print(os.stat('inner/file').st_size, open('inner/file', 'rb').read()[-1:], flush=True)
END
cat >"$scratch/freeze.py" <<'END'
import fcntl, os, select, time
FIFREEZE, FITHAW = 0xc0045877, 0xc0045878
outer = os.open('outer', os.O_RDONLY)
limit = time.monotonic() + 60
stat = lambda: open('/proc/%s/stat' % open('pid').read()).read()
fcntl.ioctl(outer, FIFREEZE, bytes(4))
try:
    open('frozen', 'w').close()
    while stat().rsplit(') ')[1][0] != 't' and time.monotonic() < limit:
        select.select([], [], [], .002)
    begin = time.monotonic()
    select.select([], [], [], .1) # where the write is not waited for, the size has been taken by then
finally:
    fcntl.ioctl(outer, FITHAW, bytes(4))
open('when', 'w').write('soon' if time.monotonic() - begin < .4 else 'late')
END

# lay_out: "inner" is an XFS on a file of "outer".
lay_out() {
	mkdir outer inner && truncate -s 400M outer.img && mkfs.ext4 -q outer.img &&
		mount -o loop outer.img outer && truncate -s 320M outer/inner.img &&
		mkfs.xfs -q outer/inner.img && mount -o loop outer/inner.img inner &&
		: >inner/file
}

# A checkpoint while a write is under way: the size that it has the file at.
size_saved() {
	rm -rf frozen pid when ck
	size=
	: >inner/file
	trecr-run -d ck -- python3 ../append.py </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup -e pid 2>>await.err || return
	python3 ../freeze.py 2>>err &
	await -t 60 -p $sup out '^ready$' >/dev/null 2>>await.err && checkpoint &&
		await -t 60 -e when 2>>await.err || return
	size=$(trecr-inspect --fds "$path" 2>>err | sed -n 's|.*inner/file, .* of \([0-9]*\) bytes.*|\1|p')
}

arena append
if ! have python3 || ! have mkfs.xfs || ! lay_out 2>>err; then
	skip "a write under way" "no XFS can be made and mounted here"
else
	# Where none ends for a second, requests are not waited for: a late thaw proves nothing.
	for _ in {1..20}; do
		size_saved || break
		[ "$(cat when)" != soon ] || break
		sweep >/dev/null
	done
	is "$size" 65536 "knows the file's size behind the write" || explain
	sweep >/dev/null
	ok "the program comes back" restart_here --rollback-files || explain
	finish
	is "$(tail -n 1 out)" "65536 b'x'" "with what has been written" || explain
	sweep >/dev/null
	umount -l inner outer
fi
done_testing
