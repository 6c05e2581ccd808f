/*
 * saved_values.c - values in a row, without types: code that reads them knows what was put.
 */
#include "lower/mpi/saved_values.h"

#include <stdlib.h>
#include <string.h>

#include "lower/records_alloc.h"
#include "lower/runtime.h"

static int append_bytes(struct mpi_saved_values *v, const void *bytes, uint64_t size)
{
	if (records_reserve((void **)&v->bytes, &v->room, v->size + size, 1) < 0)
		return agent_fail("no memory for records of MPI");
	memcpy(v->bytes + v->size, bytes, size);
	v->size += size;
	return 0;
}

int saved_put(struct mpi_saved_values *v, int64_t number)
{
	return append_bytes(v, &number, sizeof(number));
}

int saved_put_ints(struct mpi_saved_values *v, const int *numbers, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		if (saved_put(v, numbers[i]) < 0)
			return -1;
	return 0;
}

int saved_put_text(struct mpi_saved_values *v, const char *text)
{
	return append_bytes(v, text, strlen(text) + 1);
}

int64_t saved_get(struct saved_reader *r)
{
	int64_t number;

	memcpy(&number, r->at, sizeof(number));
	r->at += sizeof(number);
	return number;
}

int *saved_get_ints(struct saved_reader *r, uint64_t count)
{
	int *numbers = malloc(count * sizeof(*numbers) + 1);

	if (!numbers) {
		agent_fail("no memory for %lu numbers", count);
		return NULL;
	}
	for (uint64_t i = 0; i < count; i++)
		numbers[i] = saved_get(r);
	return numbers;
}

const char *saved_get_text(struct saved_reader *r)
{
	const char *text = r->at;

	r->at += strlen(text) + 1;
	return text;
}
