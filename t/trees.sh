# trees.sh - victims that are trees of processes, for tree.t and tree_namespace.t. To be sourced behind lib.sh.
# shellcheck shell=bash

tree_victims="tree_family tree_zombie tree_orphan tree_adopted tree_groups tree_pipes tree_shared tree_stopped
	tree_stops tree_death_signal tree_users tree_credentials tree_many tree_waiting tree_sharers"

# What clone(2) shares: the families of t/victim/tree_clones.c.
clone_families="pairs chain siblings orphans session threads"
