#!/bin/bash
# Files that are mapped shared, at a restart: they are what they are, and what is to be known is
# said. (Privately mapped files that have changed: t/bad_image.t; files of a tmpfs: t/posix_shm.t.)
. "$(dirname "$0")/lib.sh"
on_disk "$@"

cycle file_shared closed

arena changed
launch "$victim/file_shared" closed && freeze_away
touch -d '2001-01-01' shared
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "one that has been written to is mapped" || explain
is "$(grep -F "$PWD" restart.err)" "trecr-restart: $PWD/shared, a shared mapping, has changed since the \
checkpoint" "and there is a notice"
sweep >/dev/null

arena shorter
launch "$victim/file_shared" closed && freeze_away
cp shared kept && truncate -s 60K shared
timeout -k 1 60 trecr-restart ck </dev/null >/dev/null 2>restart.err
is $? 125 "one that is shorter is refused"
like "$(cat restart.err)" "cannot continue with .*/shared, a shared mapping: it is shorter" "by name"
rm shared
if [[ $PWD =~ ^(/tmp|/var/tmp|/run)/ ]]; then
	restart_here && finish && [ "$status" = 0 ] && said_ok
	result $? "one that is not there, small and in a directory for temporary files, is put back" ||
		explain
else
	timeout -k 1 60 trecr-restart ck </dev/null >/dev/null 2>restart.err
	is $? 125 "one that is not there is refused"
	like "$(cat restart.err)" "cannot open .*/shared, which the program has mapped: No such file" \
		"by name"
fi
mv kept shared
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "it comes back when the file does" || explain
sweep >/dev/null
done_testing
