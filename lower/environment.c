/* The environment: the program's, but for what concerns its ld.so (bringup/start.c). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lower/runtime.h"
#include "shared/records.h"

static int is_for_ldso(const char *variable)
{
	return !strncmp(variable, "LD_", 3) || !strncmp(variable, "GLIBC_TUNABLES=", 15);
}

static size_t add_variables(char **to, size_t count, char *const *from, int for_ldso)
{
	for (; *from; from++)
		if (is_for_ldso(*from) == for_ldso)
			to[count++] = *from;
	return count;
}

static size_t count_of(char *const *list)
{
	size_t count = 0;

	while (list[count])
		count++;
	return count;
}

int environment_take(void)
{
	char *const *theirs = RECORDS->start.environment;
	char **list = calloc(count_of(environ) + count_of(theirs) + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	add_variables(list, add_variables(list, 0, environ, 1), theirs, 0);
	environ = list; /* somebody may be looking at the other still */
	return 0;
}
