/*
 * Which functions of the API a program has used, for whoever asks (trecr-run --coverage): a
 * stub of its own has entry points that come here at their first call; the others know nothing
 * of it. Each writes a line, NAME and class, to the file that TRECR_COVERAGE names, at once: a
 * program may end in any way.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "loader/lower/raw.h"

static const struct {
	const char *name, *class;
} calls[] = {
#define CALL(name, class, how, registers, stack, floats) {#name, #class},
#include COVERAGE_CALLS
#undef CALL
};

__attribute__((visibility("hidden"))) void coverage_first(unsigned index);

/* From an entry point, with whatever the program holds. */
void coverage_first(unsigned index)
{
	const char *path = getenv("TRECR_COVERAGE");
	char line[160];
	long fd;

	if (!path || raw_length(calls[index].name) + raw_length(calls[index].class) > 150)
		return;
	stpcpy(stpcpy(stpcpy(stpcpy(line, calls[index].name), " "), calls[index].class), "\n");
	fd = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (raw_failed(fd))
		return; /* the program is not to suffer from it */
	raw(SYS_write, fd, line, raw_length(line));
	raw(SYS_close, fd);
}
