/*
 * procs.c - a search in the generated table.
 */
#include "stubs/procs.h"

static int compare_names(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (unsigned char)*a - (unsigned char)*b;
}

/* First row of @name in the sorted table, or count. */
static size_t first_of(const struct stub_proc *procs, size_t count, const char *name)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare_names(procs[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void (*stub_proc_find(const struct stub_proc *procs, size_t count, const char *name,
	unsigned version, int per_thread))(void)
{
	const struct stub_proc *common = NULL, *own = NULL;

	for (size_t i = first_of(procs, count, name);
		i < count && !compare_names(procs[i].name, name); i++) {
		const struct stub_proc **best = procs[i].per_thread ? &own : &common;

		if (procs[i].since <= version && !*best)
			*best = &procs[i];
	}
	if (per_thread && own)
		return own->entry;
	return common ? common->entry : NULL;
}
