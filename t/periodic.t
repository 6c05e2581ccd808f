#!/bin/bash
# Checkpoints without being asked each time: -i, --ckpt-signal; and -k, which removes old ones.
. "$(dirname "$0")/lib.sh"

arena interval
RUN_FLAGS="-i 1 -k 3"
launch "$victim/idle"
ok "-i 1 takes checkpoints" await_dir ck/ckpt-000005
# The sixth may be on its way: at most one more than -k is there at any time.
n=$(find ck -maxdepth 1 -name 'ckpt-??????' | wc -l)
ok "-k 3 keeps three" [ "$n" -ge 3 ] && [ "$n" -le 4 ]
not_ok "the first is gone" [ -e ck/ckpt-000001 ]
finish
is "$status" 0 "the program is whole" || explain
restart_here && finish
is "$status" 0 "the newest can be restarted" || explain

arena signal
RUN_FLAGS="--ckpt-signal USR2"
launch "$victim/idle" catch
kill -USR2 "$sup"
ok "--ckpt-signal takes a checkpoint" await_dir ck/ckpt-000001
kill -USR2 "$sup"
ok "every time" await_dir ck/ckpt-000002
finish
is "$status" 0 "the program is whole" || explain
unlike "$(cat out)" "signal 12" "the signal is not passed on to the program"

arena keep
RUN_FLAGS=
launch "$victim/idle"
for _ in 1 2 3 4 5; do checkpoint; done
# Old ones are removed when the answer is out: the next answer comes after that.
trecr-ckpt --status "$sup" >/dev/null
is "$(find ck -maxdepth 1 -name 'ckpt-*' | wc -l)" 2 "two are kept unless -k says otherwise"
is "$(readlink ck/latest)" ckpt-000005 "the newest among them"
finish
arena keep-one
RUN_FLAGS="-k 1"
launch "$victim/idle"
checkpoint
checkpoint
trecr-ckpt --status "$sup" >/dev/null
is "$(find ck -maxdepth 1 -name 'ckpt-*' -printf '%f\n')" ckpt-000002 "-k 1"
finish
# Another run in the same directory neither overwrites nor removes what it did not make.
launch "$victim/idle"
checkpoint
checkpoint
trecr-ckpt --status "$sup" >/dev/null
like "$(ls ck | xargs)" "ckpt-000002.*ckpt-000004" "checkpoints of another run are left alone"
finish
done_testing
