#!/bin/bash
# Root brings back a program of a user's. What is in that user's directory by then, or is put there
# meanwhile, leads root to no file of root's.
. "$(dirname "$0")/lib.sh"

am_root || skip_all "needs root"
have python3 || skip_all "no python3"
on_disk "$@"

# Whom nobody else is, t/users.t included.
user=$((63000 + $$ % 1000))
chmod 711 "$scratch"

# The user's directory is d, what is root's alone is in roots.
cat >"$scratch/holds.py" <<'END'
import ctypes, fcntl, mmap, os, signal, socket, sys, threading
kind, user = sys.argv[1], int(sys.argv[2])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
other = os.open('other', os.O_RDWR | os.O_CREAT) if kind == 'working' else -1
if kind == 'roots':
    held = socket.socket(socket.AF_UNIX)
    held.bind(os.path.abspath('d/thing'))
    held.listen()
elif kind in ('up', 'far'):
    os.chdir('d/a/b/c')
    held = socket.socket(socket.AF_UNIX)
    held.bind('../thing' if kind == 'up' else '../../../x/thing')
    held.listen()
elif kind == 'linked':
    held = socket.socket(socket.AF_UNIX)
    held.bind(os.path.abspath('way/thing'))
    held.listen()
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
if kind in ('file', 'written'):
    held = os.open('d/thing', os.O_RDWR | os.O_CREAT)
    os.write(held, b'as it was')
elif kind == 'directory':
    held = os.open('d', os.O_RDONLY)
elif kind == 'path':
    held = os.open('d', os.O_PATH)
elif kind == 'working':
    os.chdir('d')
elif kind == 'thread':
    def apart():
        if ctypes.CDLL(None).unshare(0x200): # CLONE_FS
            os._exit(1)
        os.chdir('d')
        moved.set()
        while True:
            signal.pause()
    moved = threading.Event()
    threading.Thread(target=apart, daemon=True).start()
    moved.wait()
elif kind == 'fifo':
    os.mkfifo('d/thing')
    held = os.open('d/thing', os.O_RDWR)
elif kind == 'unlinked fifo':
    os.mkfifo('d/thing')
    held = os.open('d/thing', os.O_RDWR)
    os.write(held, b'secret')
    os.unlink('d/thing')
elif kind == 'unlinked file':
    held = os.open('d/thing', os.O_RDWR | os.O_CREAT)
    os.unlink('d/thing')
elif kind == 'removed directory':
    os.mkdir('d/thing')
    held = os.open('d/thing', os.O_RDONLY)
    os.rmdir('d/thing')
elif kind == 'mapping':
    with open('d/thing', 'w+b') as file:
        file.write(b'mapped')
        file.flush()
        held = mmap.mmap(file.fileno(), 6)
elif kind == 'memory':
    held = os.open(sys.argv[3] + '/thing', os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    os.ftruncate(held, 4096)
    held = mmap.mmap(held, 4096)
elif kind in ('bound', 'relative'):
    held = socket.socket(socket.AF_UNIX)
    held.bind('d/thing' if kind == 'relative' else os.path.abspath('d/thing'))
    held.listen()
elif kind == 'own link':
    held = socket.socket(socket.AF_UNIX)
    held.bind(os.path.abspath('way/thing'))
    held.listen()
elif kind == 'socket':
    held = socket.socket(socket.AF_UNIX)
    held.bind('d/made')
    os.rename('d/made', 'd/thing')
    held.listen()
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
if kind == 'unlinked fifo' and os.read(held, 100) != b'secret':
    sys.exit('the FIFO has other bytes')
print('ok', flush=True)
END

# hold KIND [DIRECTORY]: a program that has such a thing, and has been saved and ended.
hold() {
	arena "$1"
	directory=${2:-$PWD/d}
	mkdir -p d roots "$directory"
	chmod 700 roots
	echo "what is root's alone" >roots/thing
	chown "$user" "$directory"
	launch python3 ../holds.py "$1" "$user" "$directory" && freeze_away
}

# The same, where the directories have been made.
hold_made() {
	launch python3 ../holds.py "$1" "$user" && freeze_away
}

# As what is there says who may read it, which inode it is and when it was changed.
looks() {
	(cd roots && find . -printf '%P %i %m %U %s %C@\n' | sort)
}

link_there() {
	rm -rf "$directory" && ln -s "$PWD/roots" "$directory" && chown -h "$user" "$directory"
}

# refused KIND: with a link of the user's in the directory's place.
refused() {
	local before
	before=$(looks)
	ok "$1: a link of the user's is put into the place of the directory" link_there
	trecr-restart -D ${RESTART_FLAGS:-} ck </dev/null >restart.out 2>restart.err
	is $? 125 "$1: root does not bring the program back" || explain
	like "$(cat restart.err)" "$directory is a symbolic link, and one of user $user" \
		"$1: with the link and its user named" || explain
	is "$(looks)" "$before" "$1: what the link leads to stays as it was"
}

# follows KIND: a link of root's own.
follows() {
	chown -h 0 "$directory"
	ok "$1: a link that is root's is followed" restart_here || explain
	finish
	is "$status $(tail -n 1 out)" "0 ok" "$1: and the program is whole" || explain
	sweep >/dev/null
}

for kind in file directory path working thread fifo mapping; do
	ok "$kind: a program that has one is saved" hold $kind || explain
	[ $kind != fifo ] || { rm roots/thing && mkfifo roots/thing; }
	refused $kind
	follows $kind
done

# In a container whose filter does not know openat2(2).
if confine --no-openat2 true; then
	mkdir "$scratch/confined" && printf '#!/bin/sh\nexec confine --no-openat2 %s "$@"\n' "$build/trecr-restart" \
		>"$scratch/confined/trecr-restart" && chmod 755 "$scratch/confined/trecr-restart"
	PATH=$scratch/confined:$PATH
	for kind in file directory path working mapping; do
		ok "no openat2, $kind: a program that has one is saved" hold $kind || explain
		refused $kind
		follows $kind
	done
	PATH=${PATH#*:}
else
	skip "no openat2: a link of the user's leads nowhere, and one of root's is followed" "no seccomp filters"
fi

ok "socket: a program that has renamed one is saved" hold socket || explain
rm roots/thing
refused socket
follows socket

for kind in bound relative; do
	ok "$kind: a program that has a socket with a name is saved" hold $kind || explain
	rm roots/thing
	refused $kind
	follows $kind
done

# What runs of this test that were killed have left in memory: the directory names the process.
remove_left_memory() {
	local left pid
	for left in /dev/shm/trecr-t.*.*; do
		pid=${left#*trecr-t.} pid=${pid%%.*}
		[ ! -d "$left" ] || kill -0 "$pid" 2>/dev/null || rm -rf "$left"
	done
}

# Before what lib.sh has for the end.
at_exit() {
	local words
	eval "words=($(trap -p EXIT))"
	# shellcheck disable=SC2064 # as it is now
	trap "$1; ${words[2]}" EXIT
}

if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
	remove_left_memory
	shared=$(mktemp -d "/dev/shm/trecr-t.$$.XXXXXX") && chmod 711 "$shared"
	at_exit '[ -n "${KEEP_SCRATCH:-}" ] || rm -rf "$shared"'
	ok "memory: a program that has some is saved" hold memory "$shared/d" || explain
	refused memory
	rm "$directory" && mkdir "$directory" && chown "$user" "$directory"
	LD_PRELOAD=$build/t/swap.so TRECR_SWAP_FILE=$directory/thing trecr-restart -D ck </dev/null >restart.out 2>restart.err
	is $? 125 "memory: nor where another user makes the file when it is about to be made" || explain
	like "$(cat restart.err)" "cannot put back $directory/thing, shared memory of the program: another file has that name" \
		"memory: which is said" || explain
	is "$(stat -c '%u %s' "$directory/thing")" "65534 0" "memory: and that has nothing of the program"
else
	for name in saved replaced refused named left meanwhile said empty; do
		skip "memory: $name" "no tmpfs at /dev/shm"
	done
fi

# What was written since the checkpoint is to be moved aside.
ok "tail: a program that writes is saved" hold written || explain
link_there
rm roots/thing
printf 'as it was and more' >roots/thing
RESTART_FLAGS=--rollback-files refused written

# --save-files puts a file back in the directory where it has begun to.
RUN_FLAGS=--save-files hold written
result $? "saved: a program whose file is saved is saved" || explain
before=$(looks)
printf 'changed' >d/thing
LD_PRELOAD=$build/t/swap.so TRECR_SWAP_DIRECTORY=$PWD/d TRECR_SWAP_FOR=$PWD/roots \
	trecr-restart -D ck </dev/null >restart.out 2>restart.err
is "$(looks)" "$before" "saved: a link that is put there meanwhile leads nowhere" || explain
is "$(cat d.was/thing)" "as it was" "saved: the file is put back where it was"
is "$(cat d.was/thing.trecr-aside)" "changed" "saved: and so is what had been there"
sweep >/dev/null

# A restart that is refused has put nothing back.
RUN_FLAGS=--save-files hold working
result $? "refused: a program with a saved file and a working directory is saved" || explain
link_there
echo changed >other
not_ok "refused: root does not bring it back for a link of the user's" quiet restart_here
is "$(cat other)" "changed" "refused: the file stays as it is"
sweep >/dev/null

# A hard link to a file of root's is not written to, nor is what was the user's.
RUN_FLAGS=--save-files hold written
result $? "hard link: a program whose file is saved is saved" || explain
before=$(cd roots && cat thing && stat -c '%i %U %s %Y' thing)
ln -f roots/thing d/thing
ok "hard link: the program comes back" restart_here || explain
is "$(cd roots && cat thing && stat -c '%i %U %s %Y' thing)" "$before" \
	"hard link: a file of root's that has the name by now stays as it was"
is "$(cat d/thing)" "as it was" "hard link: the program's is put into its place"
finish
is "$status $(tail -n 1 out)" "0 ok" "hard link: and the program is whole" || explain
sweep >/dev/null

# A socket that was renamed gets its name back in the directory that was looked at.
hold socket
result $? "meanwhile: a program that has renamed a socket is saved" || explain
rm roots/thing
before=$(looks)
LD_PRELOAD=$build/t/swap.so TRECR_SWAP_DIRECTORY=$PWD/d TRECR_SWAP_FOR=$PWD/roots \
	trecr-restart -D ck </dev/null >restart.out 2>restart.err
is "$(looks)" "$before" "meanwhile: a link that is put there leads it nowhere" || explain
sweep >/dev/null

# Nor is one bound where such a link leads: root's own, and one of the user's where it can make no files.
for kind in roots bound; do
	hold $kind
	result $? "$kind: a program with a socket in a user's directory is saved" || explain
	[ $kind = roots ] || { mv d/thing . && chown 0 d && chown "$user" .; }
	rm -f roots/thing d/thing
	before=$(looks)
	LD_PRELOAD=$build/t/swap.so TRECR_SWAP_DIRECTORY=$PWD/d TRECR_SWAP_FOR=$PWD/roots \
		trecr-restart -D ck </dev/null >restart.out 2>restart.err
	is $? 0 "$kind: it comes back" || explain
	is "$(looks)" "$before" "$kind: a link that is put there before bind(2) leads it nowhere" || explain
	is "$(stat -c '%F %u' d.was/thing) $(find d.was roots -name '.trecr*')" \
		"socket $([ $kind = roots ] && echo 0 || echo "$user") " "$kind: the socket is in the directory that was there"
	sweep >/dev/null
done

# What has no name is not made where such a link leads for the moment.
for kind in 'unlinked fifo' 'unlinked file' 'removed directory'; do
	ok "$kind: a program that has one is saved" hold "$kind" || explain
	rm roots/thing
	link_there
	before=$(looks)
	ok "$kind: it comes back" restart_here || explain
	is "$(looks)" "$before" "$kind: a link of the user's leads it nowhere"
	unlike "$(find "/proc/$(program_of "$sup")/fd" -printf '%l\n')" "/roots/" "$kind: nor is it there without a name"
	finish
	is "$status $(tail -n 1 out)" "0 ok" "$kind: and the program is whole" || explain
	sweep >/dev/null
done

# Nor does another user, who has put a FIFO into the place of the one that has just been made, get what is in it.
hold 'unlinked fifo'
result $? "a FIFO meanwhile: a program that has removed one is saved" || explain
LD_PRELOAD=$build/t/swap.so TRECR_SWAP_FIFO=$PWD/d/other restart_here
result $? "a FIFO meanwhile: it comes back" || explain
is "$(stat -c '%F %u' d/other) $(timeout 5 dd if=d/other iflag=nonblock 2>/dev/null)" "fifo 65534 " \
	"a FIFO meanwhile: another user's has nothing of the program"
finish
is "$status $(tail -n 1 out)" "0 ok" "a FIFO meanwhile: and the program is whole" || explain
sweep >/dev/null

# A directory of root's that the user gives the name of a temporary one keeps what is in it.
hold socket
result $? "temporary: a program that has renamed a socket is saved" || explain
mv roots d/roots
LD_PRELOAD=$build/t/swap.so TRECR_SWAP_TEMPORARY=roots trecr-restart -D ck </dev/null >restart.out 2>restart.err
ok "temporary: a directory of root's has its name when it is to be removed" [ -n "$(find d -path 'd/.trecr-*.was')" ] || explain
is "$(cat d/.trecr-*/thing 2>&1)" "what is root's alone" "temporary: what is in that stays" || explain
sweep >/dev/null

# Names that lead up lead nowhere else while root binds apart, nor when what that took is removed.
for kind in up far; do
	mkdir -p "$scratch/made/d/a/b/c" "$scratch/made/d/x" "$scratch/made/x" "$scratch/made/a"
	chown -R "$user" "$scratch/made/d"
	touch "$scratch/made/x/thing" "$scratch/made/a/thing" "$scratch/made/d/thing" "$scratch/made/d/a/thing"
	arena $kind
	cp -a "$scratch/made/." .
	place=$([ $kind = up ] && echo d/a/b/thing || echo d/x/thing)
	ok "$kind: a program with a socket whose name leads up is saved" hold_made $kind || explain
	before=$(find . -path ./ck -prune -o -name '*.trecr*' -print -o -type f -name thing -print -o -type d -print | sort)
	ok "$kind: it comes back" restart_here || explain
	is "$(find . -path ./ck -prune -o -name '*.trecr*' -print -o -type f -name thing -print -o -type d -print | sort)" "$before" \
		"$kind: nothing is removed or left" || explain
	is "$(stat -c '%F %u' $place)" "socket 0" "$kind: the socket has its file" || explain
	finish
	is "$status $(tail -n 1 out)" "0 ok" "$kind: and the program is whole" || explain
	sweep >/dev/null
done

# Where renameat2(2) replaces files only.
hold roots
result $? "noreplace: a program with a socket in a user's directory is saved" || explain
confine --no-noreplace trecr-restart -D ck </dev/null >restart.out 2>restart.err
case $? in
77) skip "noreplace: it comes back" "no seccomp filters" ;;
*) is "$(stat -c '%F %u %h' d/thing) $(find d -name '.trecr*')" "socket 0 1 " "noreplace: it comes back, too" || explain ;;
esac
sweep >/dev/null

# A link of a user's on the way to a socket: root's own is refused, the user's has come as far as the user does.
arena linked
mkdir d && chown "$user" . d && ln -s "$PWD/d" way && chown -h "$user" way
launch python3 ../holds.py linked "$user"
result $? "linked: a program of root's binds over a link of a user's" || explain
not_ok "linked: it cannot be saved" checkpoint -s || explain
like "$(cat ckpt.err)" "a restart could not bind it to $PWD/way/thing again: cannot open $PWD/way/: $PWD/way is a symbolic link, and one of user $user, .*chown -h" \
	"linked: with the link and the way out named" || explain
chown -h 0 way
ok "linked: it can with a link of root's" freeze_away || explain
chown -h "$user" way
not_ok "linked: which is not followed once it is the user's" quiet restart_here
chown -h 0 way
ok "linked: and is as long as it is root's" restart_here || explain
finish
is "$status $(tail -n 1 out) $(stat -c %F d/thing)" "0 ok socket" "linked: and the program is whole" || explain
sweep >/dev/null

arena own
mkdir d && chown "$user" . d && ln -s "$PWD/d" way && chown -h "$user" way
hold_made 'own link'
result $? "own link: a user's own link is no matter for the user's socket" || explain
ok "own link: which comes back" restart_here || explain
finish
is "$status $(tail -n 1 out) $(stat -c '%F %u' d/thing)" "0 ok socket $user" "own link: and the program is whole" || explain
sweep >/dev/null

# Links behind a link of root's.
arena behind
mkdir d && chown "$user" d && ln -s "$PWD/d/on" way
mkdir d/on && chown "$user" d/on
hold_made linked
result $? "behind: a program of root's binds over a link of root's" || explain
mkdir -m 700 roots && before=$(looks)
rm -r d/on && ln -s "$PWD/roots" d/on && chown -h "$user" d/on
not_ok "behind: it does not come back where that leads over a user's link" quiet restart_here
like "$(cat restart.err)" "$PWD/d/on is a symbolic link, and one of user $user" "behind: which is named" || explain
is "$(looks)" "$before" "behind: and leads nowhere"
sweep >/dev/null

# A name that is a link to the file by now.
arena renamed
mkdir d
launch python3 ../holds.py bound 0
result $? "renamed: a program binds a socket" || explain
mkdir e && mv d/thing e && ln -s "$PWD/e/thing" d/thing
not_ok "renamed: it is not saved with a link under the name" checkpoint -s || explain
like "$(cat ckpt.err)" "its name $PWD/d/thing is now a symbolic link to its file" "renamed: which is named" || explain
sweep >/dev/null

# Root without that capability.
arena chroot
mkdir d && chown "$user" d
launch setpriv --bounding-set -sys_chroot python3 ../holds.py roots "$user" && freeze_away
result $? "chroot: a program with a socket in a user's directory is saved" || explain
setpriv --bounding-set -sys_chroot trecr-restart -D ck </dev/null >restart.out 2>restart.err
is $? 125 "chroot: root binds none without the capability that it takes" || explain
like "$(cat restart.err)" "which needs CAP_SYS_CHROOT" "chroot: which is said" || explain
is "$(find d -name '.trecr*')" "" "chroot: and nothing is left"
sweep >/dev/null
done_testing
