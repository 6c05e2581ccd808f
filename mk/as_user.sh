#!/bin/bash
# as_user.sh COMMAND - root runs a shell command, such as `make check TESTS=t/files.t`, in a copy of this tree as
# an ordinary user, who is made for that and removed afterwards. It also fails if the command leaves processes
# behind. What is built here is copied, except the tools: that the user can build, too, is shown by building these.
set -euo pipefail
cd "$(dirname "$0")/.."

user=trecr-check-$$ # of this run's own: another's may be under way, or have been killed
home=$(mktemp -d "/var/tmp/$user.XXXXXX")
end_user() {
	pkill -KILL -u "$user" || true
	userdel "$user" || true
	rm -rf "$home"
}
trap end_user EXIT

useradd --home-dir "$home" --no-create-home --shell /bin/bash "$user"
mkdir "$home/trecr" "$home/tmp"
# Not what has a path in it.
tar -c --exclude=./.git --exclude='./build-*' --exclude=./build/tools --exclude='./build/trecr-*' \
	--exclude='./build/t/split/linked-*' . |
	tar -x -C "$home/trecr"
chown -R "$user": "$home"
status=0
# A session of its own, with nothing of this one's terminal or environment but the time that tests have.
setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all \
	env -i HOME="$home" USER="$user" LOGNAME="$user" PATH="$PATH" TMPDIR="$home/tmp" LANG=C.UTF-8 \
	TEST_SLOW="${TEST_SLOW:-1}" \
	setsid --wait bash -c "cd '$home/trecr' && $1" </dev/null || status=$?
left=$(pgrep -l --runstates D,I,R,S,T,t -u "$user" || true)
if [ -n "$left" ]; then
	printf 'Processes left behind:\n%s\n' "$left"
	status=1
fi
exit $status
