/*
 * gpu_libraries.c - the options --gpu and --coverage, and the environment that they stand for.
 */
#include "supervisor/split/gpu_libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/split/stub_libraries.h"

int gpu_option(void *field, const char *value, struct err *e)
{
	static const char *const words[] = {
		[GPU_AUTO] = "auto", [GPU_ON] = "on", [GPU_OFF] = "off"};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(value, words[i]))
			continue;
		*(enum gpu_use *)field = i;
		return 0;
	}
	return err_set(e, 0, "must be auto, on or off");
}

/* Of the kernel's part of the driver, whether or not its devices have been made yet. */
static bool has_driver(void)
{
	return !access("/proc/driver/nvidia/version", F_OK) || !access("/dev/nvidiactl", F_OK);
}

/* An empty file, at a name that holds wherever programs go. */
static int begin_coverage(const char *coverage, struct err *e)
{
	cleanup_fd int fd = open(coverage, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	cleanup_free char *path = fd < 0 ? NULL : realpath(coverage, NULL);

	if (!path || setenv("TRECR_COVERAGE", path, 1))
		return err_set(e, errno, "cannot write %s", coverage);
	return 0;
}

int gpu_prepare(enum gpu_use use, const char *coverage, struct err *e)
{
	const char *file = coverage ? "libtrecr-audit-coverage.so" : "libtrecr-audit.so";
	cleanup_free char *path = NULL;

	if (coverage)
		use = GPU_ON;
	if (use == GPU_OFF || (use == GPU_AUTO && !has_driver()))
		return 0;
	path = stubs_find_audit(file);
	if (!path)
		return use == GPU_ON
			       ? err_set(e, 0, "cannot find %s, which programs with a GPU need",
					 file)
			       : 0;
	if (coverage && begin_coverage(coverage, e))
		return -1;
	return stubs_load("gpu", path, e);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void gpu_finish_coverage(const char *coverage)
{
	cleanup_free char *text = NULL;
	cleanup_buf struct buf lines = {0};
	char *line, *rest;
	size_t len;
	FILE *out;

	if (read_file(coverage, &text, &len, NULL))
		return; /* removed meanwhile */
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (*line)
			buf_push(&lines, char *, &line);
	out = fopen(coverage, "we");
	if (!out || !lines.len) {
		if (out)
			fclose(out);
		return;
	}
	qsort(lines.data, buf_count(&lines, char *), sizeof(char *), compare_lines);
	for (size_t i = 0; i < buf_count(&lines, char *); i++)
		if (!i || strcmp(*buf_at(&lines, char *, i), *buf_at(&lines, char *, i - 1)))
			fprintf(out, "%s\n", *buf_at(&lines, char *, i));
	fclose(out); /* a disk that is full leaves less of the list */
}
