#!/bin/bash
# Packages: parallel. Needs: parallel
export HOME=$PWD PARALLEL_HOME=$PWD/p
mkdir p && touch p/will-cite
echo ready
seq 60 | parallel -j3 --keep-order --tmpdir . 'perl -e "\$x = {}; \$x = (\$x * 69069 + \$_) % 1000003 for 1 .. 150000; print qq({} \$x\n)"'
echo "status $?"
seq 40000 | parallel --pipe -j2 -N 500 --keep-order --tmpdir . 'sort -r | cksum'
echo "status $?"
