/*
 * Which functions of the API a program has used, for trecr-run --coverage: a
 * stub of its own has entry points that come here at their first call; the others know nothing
 * of it. Each writes a line, NAME and class, to the file that TRECR_COVERAGE names, at once: a
 * program may end in any way.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "shared/raw.h"

static const struct {
	const char *name, *class;
} calls[] = {
#define CALL(name, class, how, registers, stack, floats) {#name, #class},
#include COVERAGE_CALLS
#undef CALL
};

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void coverage_first(unsigned index);
HIDDEN void coverage_export_entry(const unsigned char id[16], unsigned slot);

static void write_line(const char *name, const char *class)
{
	const char *path = getenv("TRECR_COVERAGE");
	char line[160];
	long fd;

	if (!path || raw_length(name) + raw_length(class) > 150)
		return;
	stpcpy(stpcpy(stpcpy(stpcpy(line, name), " "), class), "\n");
	fd = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (raw_failed(fd))
		return; /* the program is not to suffer from it */
	raw(SYS_write, fd, line, raw_length(line));
	raw(SYS_close, fd);
}

/* From an entry point, with whatever the program holds. */
void coverage_first(unsigned index)
{
	write_line(calls[index].name, calls[index].class);
}

/* A function of a hidden table: ID[SLOT]. */
void coverage_export_entry(const unsigned char id[16], unsigned slot)
{
	static const char digits[] = "0123456789abcdef";
	char name[48], *at = name;

	for (int i = 0; i < 16; i++) {
		*at++ = digits[id[i] >> 4];
		*at++ = digits[id[i] & 15];
	}
	*at++ = '[';
	for (unsigned unit = 1000; unit; unit /= 10)
		if (slot >= unit || unit == 1)
			*at++ = digits[slot / unit % 10];
	*at++ = ']';
	*at = 0;
	write_line(name, "export-table");
}
