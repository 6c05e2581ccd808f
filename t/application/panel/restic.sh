#!/bin/bash
# Packages: restic. Needs: restic. Options: --save-files
# Backups, by the many threads of a Go program.
export RESTIC_REPOSITORY=$PWD/repo RESTIC_PASSWORD=p RESTIC_CACHE_DIR=$PWD/cache
mkdir data
for ((k = 0; k < 80; k++)); do seq $((k * 1000)) $((k * 1000 + 50000)) >data/$k; done
restic init >/dev/null
echo ready
for round in one two three; do
	restic backup -q --tag $round data || echo "backup $?"
	seq 100000 >data/$round
done
restic forget -q --keep-last 2 --prune || echo "forget $?"
restic check -q --read-data || echo "check $?"
restic dump --tag three latest /data/two | cksum
restic restore -q --target back latest && (cd "back/data" && cat {0..79} one two | cksum)
