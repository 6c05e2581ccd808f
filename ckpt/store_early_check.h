/*
 * store_early_check.h - whether checkpoints will find their place, seen when the program
 * starts: what is wrong then would otherwise be told at the first checkpoint, maybe hours
 * later.
 */
#ifndef CKPT_STORE_EARLY_CHECK_H
#define CKPT_STORE_EARLY_CHECK_H

#include "lib/err.h"

enum store_early_check {
	STORE_EARLY_GOOD,
	STORE_EARLY_DOUBTFUL, /* as it is now, none could be written */
	STORE_EARLY_BAD,      /* nor is that likely to change by itself */
};

/* Look at directory @dir, which need not be there yet; nothing is left behind. @e has the
 * reason unless it is STORE_EARLY_GOOD. */
enum store_early_check store_early_check(const char *dir, struct err *e);

#endif
