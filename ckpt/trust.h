/*
 * trust.h - whether others could have written what we are about to believe. An image holds
 * registers and memory: a user who can write one runs code as the user who restarts it.
 */
#ifndef CKPT_TRUST_H
#define CKPT_TRUST_H

#include "lib/err.h"

/* Refuse an open file or directory that neither we nor root own, or that group or others can
 * write to. @path is for messages. */
int trust_check(int fd, const char *path, struct err *e);

/* The same for a directory that checkpoints are in: there, others may add entries of their
 * own when the sticky bit keeps them from replacing ours (/tmp). */
int trust_check_parent(int fd, const char *path, struct err *e);

#endif
