#!/bin/sh
# 200 commands, each a process of its own.
i=0
while [ $i -lt 200 ]; do
	/bin/true
	i=$((i + 1))
done
