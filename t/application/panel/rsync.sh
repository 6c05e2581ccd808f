#!/bin/bash
# Packages: rsync. Needs: rsync. Options: --save-dirs=to
# Three processes, joined by pairs of sockets; slowed down, so as to be met in the middle. Without --save-dirs a temporary file of after the checkpoint stays.
mkdir from
for ((k = 0; k < 120; k++)); do seq $((k * 1000)) $((k * 1000 + 20000)) >from/$k; done
echo ready
rsync -a --bwlimit=2000 from/ to || echo "status $?"
diff -r -x '*.trecr-aside' from to && echo same
seq 7 >from/7
rm from/8
rsync -ac --exclude '*.trecr-aside' --delete --stats from/ to | grep -E 'Number of (regular files transferred|deleted)'
diff -r -x '*.trecr-aside' from to && echo same
