#!/bin/bash
# Trees of processes: parents and children, what they share, groups and sessions, those that
# have ended.
. "$(dirname "$0")/lib.sh"

victims="tree_family tree_zombie tree_orphan tree_groups tree_pipes tree_shared tree_stopped
	tree_users tree_many tree_waiting"

for v in $victims; do
	cycle "$v"
done
RESTART_FLAGS=--namespace
for v in $victims; do
	scenario "$v: restarted twice in a namespace" twice "$victim/$v"
done
RESTART_FLAGS=
done_testing
