/*
 * function_versions.c - a search in the generated table.
 */
#include "stubs/function_versions.h"

static int compare_names(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (unsigned char)*a - (unsigned char)*b;
}

/* First row of @name in the sorted table, or count. */
static size_t first_of(const struct function_version *versions, size_t count, const char *name)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare_names(versions[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void (*function_version_find(const struct function_version *versions, size_t count,
	const char *name, unsigned version, int per_thread))(void)
{
	const struct function_version *common = NULL, *own = NULL;

	for (size_t i = first_of(versions, count, name);
		i < count && !compare_names(versions[i].name, name); i++) {
		const struct function_version **best = versions[i].per_thread ? &own : &common;

		if (versions[i].since <= version && !*best)
			*best = &versions[i];
	}
	if (per_thread && own)
		return own->entry;
	return common ? common->entry : NULL;
}
