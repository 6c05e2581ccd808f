/*
 * lock_reach.h - whether a lock on a file excludes locks of all machines, or of this one only.
 */
#ifndef CKPT_LOCK_REACH_H
#define CKPT_LOCK_REACH_H

#include <stdbool.h>

/* Whether flock(2) of a file in directory @fd keeps out all who can reach it: its file system
 * is this machine's alone, or has locks for all machines and is mounted with them. False where
 * that is not known. */
bool lock_reaches_all(int fd);

#endif
