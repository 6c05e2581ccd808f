#!/bin/bash
# Another kernel's vdso, which every kernel's can be taken for: the functions that the program
# knows lead to the functions of the kernel it has come to.
. "$(dirname "$0")/lib.sh"

export TRECR_TEST_OTHER_VDSO=1
for v in vdso threads blocked in_handler program program-static; do
	cycle $v
done
if [ -x "$victim/program-go" ]; then cycle program-go; else skip Go "no go"; fi
unset TRECR_TEST_OTHER_VDSO

# Code of the vdso that is to be returned to is another matter: the same vdso will do only.
cycle vdso_handler
arena frame
step=start
launch "$victim/vdso_handler" && freeze_away
TRECR_TEST_OTHER_VDSO=1 timeout -k 1 60 trecr-restart ck </dev/null >>out 2>restart.err
is $? 125 "a handler that has interrupted the vdso cannot return into another"
like "$(cat restart.err)" "thread [0-9]+ .*handler.*vdso" "and is refused by its thread"
leaves_nothing "nothing is left of the attempt"
done_testing
