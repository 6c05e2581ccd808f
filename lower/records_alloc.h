/* records_alloc.h - arrays in the records arena, for what the lower half writes there while all
 * threads of the upper half are stopped. */
#ifndef LOWER_RECORDS_ALLOC_H
#define LOWER_RECORDS_ALLOC_H

#include <stdint.h>

/* Memory of the arena, zeroed; NULL: none. Never given back. */
void *records_alloc(uint64_t size);
/* Let *@array, which has *@room elements of @size bytes, have room for @count. 0 or -1. */
int records_reserve(void **array, uint64_t *room, uint64_t count, uint64_t size);

#endif
