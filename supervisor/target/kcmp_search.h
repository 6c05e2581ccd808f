/*
 * kcmp_search.h - find what is the same in a list that is in the order of kcmp(2).
 */
#ifndef SUPERVISOR_TARGET_KCMP_SEARCH_H
#define SUPERVISOR_TARGET_KCMP_SEARCH_H

#include <stddef.h>

#include "lib/err.h"

/* As kcmp(2) does: 0: element @i of the list is what is sought; 1: it comes before that; 2:
 * behind. -1 with @e filled. */
typedef int kcmp_compare(const void *context, size_t i, struct err *e);

/* *@at is the place in the list of @count elements, or where it is to be put. 1: found; 0: not;
 * -1: failure. */
int kcmp_search(
	size_t count, kcmp_compare *compare, const void *context, size_t *at, struct err *e);

#endif
