#!/bin/bash
# Two users on one machine: neither can talk to the other's supervisor, nor keep the other from
# having one.
. "$(dirname "$0")/lib.sh"

am_root || skip_all "needs root"
have setpriv || skip_all "no setpriv"

# Whom nobody else is.
user=$((64000 + $$ % 500 * 2))
other=$((user + 1))
taken=/tmp/trecr-$user
run_dir=/run/user/$user
[ ! -e "$taken" ] && [ ! -e "$run_dir" ] || skip_all "$taken or $run_dir is there"
memory= # a directory in it
trap 'rm -rf "$taken" "/tmp/trecr-$other" "$run_dir"; cd /; rm -rf "$scratch" ${memory:+"$memory"}' EXIT

# In front of a command in the background, whose process id is asked for; then options of setpriv, and "--".
as_user=(setpriv "--reuid=$user" "--regid=$user" --clear-groups)

as() { # UID COMMAND...
	setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}"
}

# Programs where others can reach them, and a place for each.
chmod 711 "$scratch"
mkdir bin ours theirs
cp "$build"/trecr-{run,ckpt,restart} "$victim"/{idle,reopened} bin
chown $user ours
chown $other theirs
PATH=$scratch/bin:$PATH
cd ours || exit 1

# start UID: a program of that user; sup is its supervisor
start() {
	rm -f out
	setpriv --reuid="$1" --regid="$1" --clear-groups -- \
		trecr-run -d ck -- idle </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
}

start $user
ok "a user's program runs" kill -0 $sup
is "$(stat -c '%u %a' "$taken")" "$user 700" "its socket is in a directory of the user's alone"
as $other trecr-ckpt $sup >theirs.out 2>theirs.err
isnt $? 0 "another user cannot ask for a checkpoint"
like "$(cat theirs.err)" "^trecr-ckpt: cannot .*(another user|not supervised|Permission)" "and is told why"
like "$(as $user trecr-ckpt $sup 2>ckpt.err)" "ckpt-000001$" "the user can" || explain
like "$(trecr-ckpt $sup 2>ckpt.err)" "ckpt-000002$" "and root" || explain
finish
is "$status" 0 "and the program is whole" || explain

# Restarted by somebody with a higher nice value, and an I/O priority, which the program did not have.
: >out && : >err && chown $user out err
nice -n -3 "${as_user[@]}" -- \
	trecr-run -d nice -- chrt -b 0 idle </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
freeze_away
rm -f pidfile
nice -n 7 ionice -c 3 "${as_user[@]}" -- \
	trecr-restart --pidfile pidfile nice </dev/null >>out 2>restart.err &
sup=$!
await -t 60 -p $sup pidfile '^[0-9]+$' >/dev/null 2>>await.err
pid=$(program_of $sup)
like "$(cat restart.err)" "cannot set the nice value of thread [0-9]+: Permission denied" \
	"a nice value that may not be had again is named" || explain
like "$(chrt -p "$pid")" SCHED_BATCH "and the policy is set all the same" || explain
like "$(ionice -p "$pid")" '^none' "the I/O priority of trecr-restart is not the program's" || explain
finish
is "$status" 0 "and the program is whole" || explain

# Who may not attach is told why.
cp ../bin/idle ../bin/setgid
chgrp $other ../bin/setgid && chmod g+s ../bin/setgid
: >out && : >err && chown $user out err
"${as_user[@]}" -- trecr-run -d setgid -- setgid </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
as $user trecr-ckpt $sup >ckpt.out 2>ckpt.err
isnt $? 0 "a setgid program cannot be saved by a user"
like "$(cat ckpt.err)" "process [0-9]+ .setgid.: it runs with another group.*only root" "who is told why" || explain
finish
is "$status" 0 "and the program is whole" || explain

cp ../bin/idle ../bin/capable
if have setcap && setcap cap_net_raw=ep ../bin/capable 2>/dev/null; then
	: >out && : >err && chown $user out err
	"${as_user[@]}" -- trecr-run -d capable -- capable </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
	as $user trecr-ckpt $sup >ckpt.out 2>ckpt.err
	like "$? $(cat ckpt.err)" "^[1-9].*process [0-9]+ .capable.: it has capabilities that trecr lacks.*only root" \
		"nor a program whose file gives it capabilities" || explain
	finish
	is "$status" 0 "and the program is whole" || explain
else
	skip "a program whose file gives it capabilities" "no file capabilities here"
	skip "and the program is whole" "no file capabilities here"
fi

# A file that is watched, and that the user may read no more; without namespaces, where the user has all rights.
cat >watching.py <<'END'
import ctypes, os, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
file = os.open("watched", os.O_RDWR | os.O_CREAT)
queue = libc.inotify_init1(0)
assert libc.inotify_add_watch(queue, b"watched", 2) == 1
os.unlink("watched")
os.fchmod(file, 0o200)
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
os.write(file, b"changed")
assert struct.unpack("iIII", os.read(queue, 4096)[:16])[:2] == (1, 2) and os.fstat(file).st_mode & 0o777 == 0o200
print("ok", flush=True)
END
if have python3; then
	capable=("${as_user[@]}" --inh-caps=+checkpoint_restore
		--ambient-caps=+checkpoint_restore --)
	: >out && : >err && chown $user out err
	"${as_user[@]}" -- trecr-run -d watching -- python3 watching.py </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
	freeze_away
	rm -f pidfile
	"${capable[@]}" trecr-restart --pidfile pidfile watching </dev/null >>out 2>restart.err &
	sup=$!
	await -t 60 -p $sup pidfile '^[0-9]+$' >/dev/null 2>>await.err
	finish
	is "$status $(tail -n 1 out)" "0 ok" "a watch of a file that may not be read any more comes back" || explain
else
	skip "a watch of a file that may not be read any more comes back" "no python3"
fi

# A bounding set that is narrower than ours can be made again in a namespace, or by who has CAP_SETPCAP.
: >out && : >err && chown $user out err
"${as_user[@]}" --bounding-set=-net_admin -- \
	trecr-run -d bounded -- idle </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
grep ^CapBnd "/proc/$(program_of $sup)/status" >capabilities
freeze_away
"${as_user[@]}" --inh-caps=+checkpoint_restore --ambient-caps=+checkpoint_restore -- \
	trecr-restart bounded </dev/null >/dev/null 2>restart.err
like "$? $(cat restart.err)" "125 .*cannot bound the capabilities .CAP_SETPCAP.*not permitted" \
	"no program comes back with more capabilities in its bounding set" || explain
rm -f pidfile
"${as_user[@]}" -- \
	trecr-restart --pidfile pidfile bounded </dev/null >>out 2>restart.err &
sup=$!
await -t 60 -p $sup pidfile '^[0-9]+$' >/dev/null 2>>await.err
is "$(grep ^CapBnd "/proc/$(program_of $sup)/status")" "$(cat capabilities)" "by an ordinary user it comes back with its own" || explain
finish
is "$status" 0 "and the program is whole" || explain

# Standard output is a file that root's shell has opened for the program, in its own directory.
mkdir -m 700 secret
chmod 777 .
rm -f out
"${as_user[@]}" -- \
	trecr-run -d ck -- sh -c 'echo ready >out; exec idle count' </dev/null >secret/out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
as $user trecr-ckpt $sup >ckpt.out 2>ckpt.err
isnt $? 0 "a file in a directory that the user may not enter is refused"
like "$(cat ckpt.err)" "secret/out.*user $user may not enter its directory.*trecr-run COMMAND \| cat >FILE" \
	"with the way out"
like "$(cat err)" "^trecr-run: no checkpoint will be possible .* descriptor 1 .*secret/out., as user $user may not enter its directory: .*cat >FILE" \
	"as is said at the start, too" || explain
finish
chmod 755 .

# One that was within reach at the checkpoint.
cd "$scratch/ours" && as $user mkdir reached && cd reached || exit 1
as $user mkdir later && as $user touch out err later/out
"${as_user[@]}" -- \
	trecr-run -d ck -- sh -c 'echo ready >out; exec idle count' </dev/null >later/out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
as $user trecr-ckpt -s $sup >ckpt.out 2>ckpt.err
is "$? $(cat err)" "0 " "a file within reach is no reason to warn or refuse" || explain
chmod 0 later
as $user trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "out of reach at the restart the program does not come back"
like "$(cat restart.err)" "cannot open $PWD/later/out .descriptor 1.: user $user may not enter its directory; allow it .chmod" \
	"with the way out"
chmod 755 later && mv later/out later/moved
ln -s "$scratch/ours/secret/out" later/out
as $user trecr-restart ck </dev/null >restart.out 2>restart.err
like "$? $(cat restart.err)" "125 .*cannot open $PWD/later/out .descriptor 1.: user $user may not enter the directory that it is a link into;" \
	"nor by a link into a directory that the user may not enter, which is said"
rm later/out
as $user trecr-restart ck </dev/null >restart.out 2>restart.err
like "$? $(cat restart.err)" "125 .*cannot open $PWD/later/out .descriptor 1.: No such file or directory: make it again .*--save-files" \
	"nor without the file, with the way out"
cd "$scratch/ours" && rm -rf reached

# Where that can be entered, the file may be opened later on.
mkdir -m 777 place
: >private
chmod 600 private
chmod 666 err
(cd place && exec "${as_user[@]}" -- \
	trecr-run -d ck -- idle </dev/null >../private 2>../err) &
sup=$!
await -t 60 -p $sup private '^ready$' >/dev/null 2>&1
like "$(as $user trecr-ckpt $sup 2>ckpt.err)" "ckpt-000001$" "with its output in a file of root's alone, a program is saved"
like "$(cat ckpt.err)" "user $user may not open $PWD/private .descriptor 1.*cannot restart.*chmod" \
	"and the user is told" || explain
as $user trecr-ckpt -s $sup >ckpt.out 2>ckpt.err
is $? 2 "but not ended"
like "$(cat ckpt.err)" "could not be restarted here, so the program resumes: user $user may not open $PWD/private .*chmod" \
	"with the reason" || explain
chmod 666 private
as $user trecr-ckpt -s $sup >ckpt.out 2>ckpt.err
is "$? $(told)" "0 " "when the file may be opened it is" || explain
await -t 60 -p $sup 2>>await.err
sup=$(cd place && as $user trecr-restart -D ck </dev/null 2>../restart.err)
kill -USR1 "$sup"
await -t 60 -p "$sup" 2>>await.err
is "$(tail -n 1 private)" ok "and comes back" || explain
rm -r place private

# Files of other users, which their modes let this user write to: one in a directory in which it
# may make files, and one where it may not, with --save-files.
mkdir -m 777 open
mkdir -m 755 closed
echo others | tee open/log >closed/log
: >out
chmod 666 {open,closed}/log out err
"${as_user[@]}" -- \
	trecr-run --save-files -d saved -- sh -c 'exec 8>>open/log 9>>closed/log
		echo more >&8; echo more >&9; exec idle count' </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
as $user trecr-ckpt -s $sup >ckpt.out 2>ckpt.err
is $? 0 "a program that writes to other users' files is saved with them" || explain
like "$(cat ckpt.err)" "/closed/log is not saved: no file can be created beside it" \
	"but for one beside which its user may make no file, which is named"
await -t 60 -p $sup 2>>await.err
echo later >open/log
as $user trecr-restart -D saved </dev/null >restart.out 2>restart.err
is $? 0 "and restarted" || explain
sup=$(cat restart.out)
is "$(cat open/log)" $'others\nmore' "with what the files held"
is "$(cat open/log.trecr-aside)" later "and with what came later beside them"
kill -USR1 "$sup"
await -t 60 -p "$sup" 2>>await.err
rm -r open closed

# What was one user's is not another's to go on with.
cp -r ck given
chown -R $other given
chmod 711 .
chmod 666 out err
as $other trecr-restart given </dev/null >restart.out 2>restart.err
is $? 125 "a program of one user is not brought back by another"
like "$(cat restart.err)" "the program ran as user $user .*only these and root" "which is said" ||
	explain

# Nor by the same user, after leaving a group.
setpriv --reuid=$user --regid=$user --groups=5000 -- trecr-run -d grouped -- idle </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
as $user trecr-ckpt -s $sup >/dev/null 2>ckpt.err
await -t 60 -p $sup 2>/dev/null
as $user trecr-restart grouped </dev/null >restart.out 2>restart.err
is $? 125 "nor out of a group that the user is not in"
like "$(cat restart.err)" "the program was in group 5000" "which is said, too" || explain

# A file whose mode forbids by now what it is open for is opened without changing that, also where only a supplementary group
# is the file's (as in a directory with the set-group-ID bit). Where no set-group-ID program can be executed, it is changed
# for a moment.
opening=(reopened) files=(created forbidden mapped)
comes_back_whatever_mode() { # WHAT GROUP [OPTION-OF-SETPRIV]; of ${opening[@]}, which has ${files[@]}
	local modes changed as_member file untouched=()
	rm -rf modes && mkdir modes && touch modes/{out,err} && chown -R $user:"$2" modes && chmod 2755 modes && cd modes || exit 1
	setpriv --reuid=$user --regid=$user --groups=5000,5001 -- \
		trecr-run -d ck -- "${opening[@]}" </dev/null >out 2>err &
	sup=$!
	as_member=(setpriv "--reuid=$user" "--regid=$user" "--groups=5000,5001" ${3:+"$3"} --)
	await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
	modes=$(stat -c '%n %a %g' "${files[@]}")
	changed=$(stat -c %z "${files[@]}")
	ok "a program with files of all modes $1 is saved" quiet "${as_member[@]}" trecr-ckpt $sup || explain
	[ -n "${3:-}" ] || is "$(stat -c %z "${files[@]}")" "$changed" "without touching them" || explain
	# On a tmpfs a file that is mapped is memory, which is put back.
	for file in "${files[@]}"; do
		[ "$file $(stat -f -c %T .)" = "mapped tmpfs" ] || untouched+=("$file")
	done
	changed=$(stat -c %z "${untouched[@]}")
	"${as_member[@]}" trecr-ckpt -s $sup >/dev/null 2>ckpt.err
	await -t 60 -p $sup 2>/dev/null
	"${as_member[@]}" trecr-restart --pidfile pidfile ck </dev/null >>out 2>restart.err &
	sup=$!
	ok "a program with files of all modes $1 comes back" \
		quiet await -t 60 -p $sup pidfile '^[0-9]+$' || explain
	is "$(stat -c '%n %a %g' "${files[@]}")" "$modes" "their modes are what they were" || explain
	[ -n "${3:-}" ] || is "$(stat -c %z "${untouched[@]}")" "$changed" "and have not been touched" || explain
	finish
	is "$status $(tail -n 1 out)" "0 ok" "and the program is whole" || explain
	cd ..
}

if as $user unshare -U true 2>/dev/null; then
	comes_back_whatever_mode "of its group" $user
	comes_back_whatever_mode "of another of its groups" 5000
	comes_back_whatever_mode "of such a group, without set-group-ID programs," 5001 --no-new-privs
	# A FIFO is opened for both first, which the mode forbids, and then as it was, which it permits.
	opening=(sh -c 'mkfifo fifo && exec 8<>fifo 9<fifo 8>&- && chmod 444 fifo && exec idle') files=(fifo)
	comes_back_whatever_mode "that are FIFOs of another group" 5000
	# What is mapped there is memory, which a checkpoint reads.
	if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
		memory=$(mktemp -d /dev/shm/trecr-t.XXXXXX) && chmod 711 "$memory" && cd "$memory" || exit 1
		opening=(reopened) files=(created forbidden mapped)
		comes_back_whatever_mode "that are memory of another group" 5000
		cd "$scratch/ours" || exit 1
	else
		skip "a program with files of all modes that are memory of another group comes back" "no tmpfs at /dev/shm"
	fi
else
	skip "a program with files of all modes comes back" "no user namespaces for users"
fi
# Who may choose ids needs no namespaces.
with_capability=("${as_user[@]}" --inh-caps=+checkpoint_restore
	--ambient-caps=+checkpoint_restore --)
what="with CAP_CHECKPOINT_RESTORE alone a user's program comes back in the namespaces of its user"
if "${with_capability[@]}" true 2>/dev/null; then
	as $user mkdir chooser && cd chooser || exit 1
	as $user touch out err
	"${as_user[@]}" -- trecr-run -d ck -- idle </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
	as $user trecr-ckpt -s $sup >/dev/null 2>ckpt.err
	await -t 60 -p $sup 2>/dev/null
	"${with_capability[@]}" trecr-restart --pidfile pidfile ck </dev/null >>out 2>restart.err &
	sup=$!
	await -t 60 -p $sup pidfile '^[0-9]+$' >/dev/null 2>&1
	program=$(program_of $sup)
	is "$(readlink /proc/"$program"/ns/{user,pid}) $(awk '/^Cap(Inh|Prm|Amb)/ { print $2 + 0 }' /proc/"$program"/status | xargs)" \
		"$(readlink /proc/self/ns/{user,pid}) 0 0 0" "$what, and does not keep the capability" || explain
	finish
	is "$status $(tail -n 1 out)" "0 ok" "and the program is whole" || explain
	cd ..
else
	skip "$what" "cannot make a user who may choose ids"
fi

# What a program may not do any more in the user namespace of a restart is said there, with the way out.
if have python3; then
	as $user mkdir owners && cd owners || exit 1
	as $user touch out err
	in_group=(setpriv "--reuid=$user" "--regid=$user" --groups=5000)
	"${in_group[@]}" -- trecr-run -d ck -- python3 -c '
import errno, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
def change(*ids):
    try:
        return os.chown("file", *ids) or "changed"
    except OSError as e:
        return errno.errorcode[e.errno]
open("file", "w")
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
print(change(0, -1), change(-1, 5000), change(-1, os.getgid()), flush=True)' </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>&1
	"${in_group[@]}" -- trecr-ckpt -s $sup >/dev/null 2>ckpt.err
	await -t 60 -p $sup 2>/dev/null
	owners() { # OPTION...: what a restarted program may do
		rm -f pidfile
		truncate -s 6 out # as it was at the checkpoint
		"${in_group[@]}" "$@" -- trecr-restart --pidfile pidfile ck </dev/null >>out 2>restart.err &
		sup=$!
		await -t 60 -p $sup pidfile '^[0-9]+$' >/dev/null 2>&1
		finish
		may=$(tail -n 1 out)
	}
	owners
	is "$may" "EINVAL EINVAL changed" "in a user namespace there are no other users and groups" || explain
	like "$(cat restart.err)" "requires CAP_CHECKPOINT_RESTORE here; for it only user $user and group $user exist there, see RESTART IN A NAMESPACE in trecr.7.\$" \
		"which is said, with where the way out is"
	if "${in_group[@]}" --inh-caps=+checkpoint_restore --ambient-caps=+checkpoint_restore -- true 2>/dev/null; then
		owners --inh-caps=+checkpoint_restore --ambient-caps=+checkpoint_restore
		is "$may $(grep -c namespace restart.err)" "EPERM changed changed 0" "without one there are" || explain
	else
		skip "without one there are" "cannot make a user who may choose ids"
	fi
	cd ..
fi

# The process that opens files by their group takes no id that the program needs: the next ids are those of the program's
# processes.
what="what opens files of another group does not have an id of the program's"
if "${with_capability[@]}" unshare -U true 2>/dev/null &&
	unshare --pid --fork --mount-proc test -w /proc/sys/kernel/ns_last_pid 2>/dev/null; then
	mkdir ids && touch ids/{out,err} && chown -R $user:5000 ids && chmod 2755 ids && cd ids || exit 1
	cat >../ids.sh <<'END'
user=$1
member=(setpriv "--reuid=$user" "--regid=$user" --groups=5000)
# Before the program, whose processes are to have one id after the other.
await -t 60 out '^ready$' >/dev/null &
waits=$!
"${member[@]}" -- trecr-run -d ck -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1000 & done; exec reopened' \
	</dev/null >out 2>err &
sup=$!
wait $waits || exit 2
read -r first _ <"/proc/$sup/task/$sup/children"
"${member[@]}" -- trecr-ckpt -s $sup >/dev/null || exit 3
await -t 60 -p $sup
# What has ended this shell waits for, as process 1, when another command ends.
for ((id = sup; id < first + 13; id++)); do
	while [ -e "/proc/$id" ]; do env true; done
done
# As before.
await -t 60 pidfile '^[0-9]+$' >/dev/null &
waits=$!
echo $((first - 2)) >/proc/sys/kernel/ns_last_pid || exit 4
"${member[@]}" --inh-caps=+checkpoint_restore --ambient-caps=+checkpoint_restore -- \
	trecr-restart --pidfile pidfile ck </dev/null >>out 2>restart.err &
sup=$!
wait $waits || exit 5
[ $sup = $((first - 1)) ] && read -r comm <"/proc/$first/comm" &&
	echo "$comm $([ "/proc/$first/ns/pid" -ef /proc/self/ns/pid ] && echo here)"
kill -USR1 $sup
await -t 60 -p $sup
END
	is "$(timeout -k 1 240 unshare --pid --fork --kill-child --mount-proc "$BASH" ../ids.sh $user 2>>await.err) $(cat restart.err)" \
		"reopened here " "$what" || explain
	is "$(tail -n 1 out)" ok "and the program is whole" || explain
	cd ..
else
	skip "$what" "cannot make a pid namespace in which ids are chosen"
	skip "and the program is whole" "cannot make a pid namespace in which ids are chosen"
fi

# A capability of the program's file makes what it makes untraceable.
what="with a capability of its own file trecr-restart says why it cannot restart"
cp ../bin/trecr-restart ../bin/gaining
if have setcap && cp "$(command -v cat)" ../bin/gains && setcap cap_checkpoint_restore=ep ../bin/gains 2>/dev/null &&
	[ "$(as $user gains /proc/self/status | awk '/^CapEff/ { print $2 + 0 }')" != 0 ] &&
	[ "$(cat /proc/sys/fs/suid_dumpable)" != 1 ]; then
	setcap cap_checkpoint_restore=ep ../bin/gaining
	as $user timeout 60 gaining chooser/ck </dev/null >restart.out 2>restart.err
	like "$? $(cat restart.err)" "125 .*capabilities from its file .*setcap -r.*ambient" "$what" || explain
else
	skip "$what" "no file capabilities here"
fi

# A socket that root has made in a user's directory and given to that user, who puts a link to a file
# of root's there when root brings the program back.
cd "$scratch" && : >root.file && chmod 600 root.file
socket=$scratch/ours/socket
rm -f out
trecr-run -d ck -- perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($ARGV[0])) &&
	listen(S, 5) && chmod(0646, $ARGV[0]) && chown($ARGV[1], $ARGV[1], $ARGV[0]) or die "$!";
	$| = 1; print "ready\n"; sleep' "$socket" $user </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>&1 && freeze_away
ok "a program with a socket in a user's directory is saved" [ $? = 0 ] || explain
LD_PRELOAD=$build/t/swap.so TRECR_SWAP=$socket TRECR_SWAP_FOR=$scratch/root.file \
	trecr-restart -D ck </dev/null >restart.out 2>restart.err
is $? 125 "with a link put into the place of the socket it does not come back"
like "$(cat restart.err)" "cannot bind a socket to $socket: File exists" "which is said"
is "$(stat -c '%u %a' root.file)" "0 600" "and the file that the link leads to stays as it was"
rm -f "$socket"
ok "it comes back" restart_detached || explain
is "$(stat -c '%F %u %g %a' "$socket")" "socket $user $user 646" "with its socket, its owner and mode"
sweep >/dev/null
cd ours || exit 1

# The name in /tmp is everybody's to take.
rm -rf "$taken"
as $other mkdir -m 777 "$taken"
start $user
await -t 60 -p $sup 2>/dev/null || kill -KILL $sup
wait $sup
is $? 125 "with the directory taken by another user there is no supervisor"
like "$(cat err)" "^trecr-run: cannot .*$taken belongs to user $other, not $user" \
	"and it is said whose the directory is"

if mkdir -p "$run_dir" 2>/dev/null; then
	chown $user "$run_dir"
	chmod 700 "$run_dir"
	start $user
	ok "unless the user has a directory of a session" [ -S "$run_dir/trecr/$sup" ]
	: >"$taken/$sup"
	like "$(as $user trecr-ckpt $sup 2>ckpt.err)" "ckpt-000003$" "where it is found" || explain
	like "$(trecr-ckpt $sup 2>ckpt.err)" "ckpt-000004$" "by root, too" || explain
	finish
	is "$status" 0 "and the program is whole" || explain
else
	for name in "a session's directory" "found" "by root" "whole"; do
		skip "$name" "cannot make $run_dir"
	done
fi

# A directory that is open to others is no better than another user's.
rm -rf "$run_dir" "$taken"
as $user mkdir -m 770 "$taken"
start $user
await -t 60 -p $sup 2>/dev/null || kill -KILL $sup
wait $sup
is $? 125 "a directory that is open to others is not used"
like "$(cat err)" "$taken is open to others" "and that is said"
done_testing
