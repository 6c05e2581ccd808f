/*
 * store_outlook.h - whether checkpoints will find their place, seen when the program starts:
 * what is wrong then would otherwise be told at the first checkpoint, maybe hours later.
 */
#ifndef CKPT_STORE_OUTLOOK_H
#define CKPT_STORE_OUTLOOK_H

#include "lib/err.h"

enum store_outlook {
	STORE_OUTLOOK_GOOD,
	STORE_OUTLOOK_DOUBTFUL, /* as it is now, none could be written */
	STORE_OUTLOOK_BAD,      /* nor is that likely to change by itself */
};

/* Look at directory @dir, which need not be there yet; nothing is left behind. @e has the
 * reason where the outlook is not good. */
enum store_outlook store_outlook(const char *dir, struct err *e);

#endif
