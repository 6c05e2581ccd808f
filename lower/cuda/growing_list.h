/*
 * growing_list.h - lists that grow as elements are added.
 */
#ifndef LOWER_CUDA_GROWING_LIST_H
#define LOWER_CUDA_GROWING_LIST_H

#include <stddef.h>

/*
 * See to it that there is room for one more element of @size bytes. @list is the address of the pointer to the first
 * (NULL, or from malloc), which may move; @count elements are there, and *@room fit. 0, or -1 by agent_fail(): "no
 * memory @purpose".
 */
int list_reserve(void *list, size_t count, size_t *room, size_t size, const char *purpose);

#endif
