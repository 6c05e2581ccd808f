/*
 * addresses.h - where members of other machines reach this one.
 */
#ifndef SUPERVISOR_JOB_ADDRESSES_H
#define SUPERVISOR_JOB_ADDRESSES_H

#include <stddef.h>

#include "lib/err.h"

#define ADDRESSES_MAX 8
#define ADDRESS_TEXT  46 /* INET6_ADDRSTRLEN */

struct addresses {
	char text[ADDRESSES_MAX][ADDRESS_TEXT];
	size_t count;
};

/* The addresses of all interfaces that are up, but the loopback's; of @interface only, if it is
 * not NULL, which must have one. */
int addresses_own(struct addresses *a, const char *interface, struct err *e);

#endif
