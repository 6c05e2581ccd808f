#!/bin/bash
# make soak: a busy tree is saved, ended and brought back SOAK_CYCLES times (500). Pipelines come
# and go all the time, and each checks its result.
. "$(dirname "$0")/lib.sh"

cat >work <<'END'
#!/bin/bash
worker() {
	while [ ! -e stop ]; do
		[ "$(seq 1 3000 | sort -rn | (read -r first; cat >/dev/null; echo "$first"))" = 3000 ] ||
			{ echo "bad: worker $1"; exit 1; }
	done
	exit 0
}
for i in 1 2 3; do worker $i & done
echo ready
failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
[ $failed = 0 ] && echo ok
END
chmod +x work
cycles=${SOAK_CYCLES:-500}
plan "$cycles"
launch ./work || exit 1
i=0
while [ $i -lt "$cycles" ]; do
	i=$((i + 1))
	freeze_away && restart_detached
	result $? "cycle $i" || {
		explain
		exit 1
	}
done
: >stop
await -t 60 -p "$sup"
said_ok || exit 1
