#!/bin/bash
# Packages: coreutils. Needs: sort split join. Options: --save-dirs=work
# A file that does not fit into the memory that sort takes: temporary files are written, read, merged and removed.
mkdir work && cd work || exit 1
seq 1 400000 | awk '{ print $1 * 7919 % 1000003, $1, "some more words of the line" }' >data
echo ready
sort -k1,1n -S 3M --parallel=2 --batch-size=4 -T . data >sorted
echo "status $?"
cksum sorted
sort -S 2M --compress-program=gzip --batch-size=3 -T . -r data | cksum
split -n l/7 --filter='sort -S 1M -T . -u | cksum' data
