#!/bin/bash
# Trees of processes come back in namespaces of their own, too (--namespace).
. "$(dirname "$0")/lib.sh"
. "$top/t/trees.sh"

RESTART_FLAGS=--namespace
for v in $tree_victims; do
	scenario "$v: restarted twice in a namespace" twice "$victim/$v"
done
for family in $clone_families; do
	scenario "tree_clones $family: restarted twice in a namespace" twice "$victim/tree_clones" "$family"
done
done_testing
