/*
 * learned.c - one record of such values, put and got in the same order.
 */
#include "lower/mpi/learned.h"

#include <stdlib.h>
#include <string.h>

#include "lower/records_alloc.h"
#include "lower/runtime.h"

static int append_bytes(struct mpi_learned *l, const void *bytes, uint64_t size)
{
	if (records_reserve((void **)&l->bytes, &l->room, l->size + size, 1) < 0)
		return agent_fail("no memory for records of MPI");
	memcpy(l->bytes + l->size, bytes, size);
	l->size += size;
	return 0;
}

int learned_put(struct mpi_learned *l, int64_t number)
{
	return append_bytes(l, &number, sizeof(number));
}

int learned_put_ints(struct mpi_learned *l, const int *numbers, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (learned_put(l, numbers[i]) < 0)
			return -1;
	return 0;
}

int learned_put_text(struct mpi_learned *l, const char *text)
{
	return append_bytes(l, text, strlen(text) + 1);
}

int64_t learned_get(struct learned_reader *r)
{
	int64_t number;

	memcpy(&number, r->at, sizeof(number));
	r->at += sizeof(number);
	return number;
}

int *learned_get_ints(struct learned_reader *r, uint64_t count)
{
	int *numbers = malloc(count * sizeof(*numbers) + 1);

	if (!numbers) {
		agent_fail("no memory for %lu numbers", count);
		return NULL;
	}
	for (uint64_t i = 0; i < count; i++)
		numbers[i] = learned_get(r);
	return numbers;
}

const char *learned_get_text(struct learned_reader *r)
{
	const char *text = r->at;

	r->at += strlen(text) + 1;
	return text;
}
