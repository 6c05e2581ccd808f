#!/bin/bash
# Packages: john perl. Needs: /usr/sbin/john perl
# Processes that search for passwords, with a file of those found and a state that is written at times.
export HOME=$PWD
perl -e 'print "u$_:", crypt(sprintf("%04d", $_ * 769 % 7000), "a" . $_ % 10), "\n" for 1 .. 12' >words
echo ready
/usr/sbin/john --session="$PWD/s" --pot="$PWD/pot" --fork=2 --incremental=Digits --format=descrypt --max-run-time=100000 words >john.log 2>&1
echo "status $?"
sort -u pot
