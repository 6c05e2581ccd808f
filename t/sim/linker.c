/*
 * Linker states. One text is linked with nothing. As NVIDIA documents it, the driver keeps the address
 * of the array of values that options came with, and writes results there during later calls (sizes are unsigned int and
 * times float, in the first four bytes of a value); here to the array and to logs during each call. What was linked is
 * the linker state's, and is overwritten when that ends.
 */
#include "t/sim/linker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

#define PTX     1
#define OPTIONS 8

/* CUjit_option */
enum { WALL_TIME = 2, INFO_LOG, INFO_LOG_SIZE, ERROR_LOG, ERROR_LOG_SIZE };

struct linker {
	struct object object;
	const void *context;
	char *text, *code;
	unsigned count;
	int options[OPTIONS];
	uint64_t *values; /* the program's array */
	char *logs[2];    /* the program's, and their sizes */
	uint64_t log_sizes[2];
	struct linker *next;
};

static struct linker *linkers;

SIM_EXPORT int cuLinkCreate_v2(
	unsigned count, const int *options, uint64_t *values, void **linker);
SIM_EXPORT int cuLinkAddData_v2(void *linker, int type, const void *data, size_t size,
	const char *name, unsigned count, const int *options, void **values);
SIM_EXPORT int cuLinkAddFile_v2(void *linker, int type, const char *path, unsigned count,
	const int *options, void **values);
SIM_EXPORT int cuLinkComplete(void *linker, void **image, size_t *size);
SIM_EXPORT int cuLinkDestroy(void *linker);

/* NULL: there is no such option. */
static uint64_t *value(const struct linker *l, int option)
{
	for (unsigned i = 0; i < l->count; i++)
		if (l->options[i] == option)
			return &l->values[i];
	return NULL;
}

/* One line more in a log, which is longer or shorter by now than the size that it had at first. */
static void write_log(struct linker *l, int option, const char *what, const char *name)
{
	unsigned i = option == ERROR_LOG;
	uint64_t *used = value(l, option + 1), length;
	uint32_t size;

	if (!used || !l->logs[i])
		return;
	length = strnlen(l->logs[i], l->log_sizes[i]);
	snprintf(l->logs[i] + length, l->log_sizes[i] - length, "%s %s\n", what, name);
	size = strlen(l->logs[i]) + 1;
	memcpy(used, &size, sizeof(size));
}

static void write_time(const struct linker *l)
{
	uint64_t *at = value(l, WALL_TIME);
	float time;

	if (!at)
		return;
	memcpy(&time, at, sizeof(time));
	time++;
	memcpy(at, &time, sizeof(time));
}

int cuLinkCreate_v2(unsigned count, const int *options, uint64_t *values, void **linker)
{
	struct linker *l;

	SIM_ENTER();
	if (sim_have_context() || count > OPTIONS)
		return sim_have_context() ? SIM_INVALID_CONTEXT : SIM_INVALID_VALUE;
	l = object_new(OBJECT_LINKER, sizeof(*l));
	l->context = current_context();
	l->count = count;
	if (count)
		memcpy(l->options, options, count * sizeof(*options));
	l->values = values;
	for (int i = 0; i < 2; i++) {
		uint64_t *log = value(l, INFO_LOG + 2 * i);
		uint64_t *size = value(l, INFO_LOG_SIZE + 2 * i);

		l->log_sizes[i] = size ? (uint32_t)*size : 0;
		l->logs[i] = log && l->log_sizes[i] ? (char *)*log : NULL;
		if (l->logs[i])
			*l->logs[i] = 0;
	}
	l->next = linkers;
	linkers = l;
	*linker = l;
	return 0;
}

static int add(struct linker *l, int type, const char *data, size_t size, const char *name)
{
	if (l->code || l->text || type != PTX || !size || data[size - 1]) {
		write_log(l, ERROR_LOG, "cannot add", name);
		return SIM_INVALID_VALUE;
	}
	l->text = strdup(data);
	write_log(l, INFO_LOG, "added", name);
	write_time(l);
	return 0;
}

int cuLinkAddData_v2(void *linker, int type, const void *data, size_t size, const char *name,
	unsigned count, const int *options, void **values)
{
	struct linker *l;

	SIM_ENTER();
	l = object_get(OBJECT_LINKER, linker, __func__);
	return l ? add(l, type, data, size, name ? name : "data") : SIM_INVALID_HANDLE;
}

int cuLinkAddFile_v2(void *linker, int type, const char *path, unsigned count,
	const int *options, void **values)
{
	char data[4096] = "";
	struct linker *l;
	FILE *f;
	size_t n;

	SIM_ENTER();
	l = object_get(OBJECT_LINKER, linker, __func__);
	if (!l)
		return SIM_INVALID_HANDLE;
	f = fopen(path, "re");
	if (!f)
		return 301; /* CUDA_ERROR_FILE_NOT_FOUND */
	n = fread(data, 1, sizeof(data) - 1, f);
	fclose(f);
	return add(l, type, data, n + 1, path);
}

int cuLinkComplete(void *linker, void **image, size_t *size)
{
	struct linker *l;

	SIM_ENTER();
	l = object_get(OBJECT_LINKER, linker, __func__);
	if (!l || !l->text) {
		if (l)
			write_log(l, ERROR_LOG, "nothing", "to link");
		return l ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	}
	if (!l->code)
		l->code = strdup(l->text);
	write_log(l, INFO_LOG, "linked", "all");
	write_time(l);
	*image = l->code;
	if (size)
		*size = strlen(l->code) + 1;
	return 0;
}

static void end(struct linker *l)
{
	struct linker **at = &linkers;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (l->code)
		memset(l->code, 0xee, strlen(l->code));
	free(l->code);
	free(l->text);
	object_free(l);
}

int cuLinkDestroy(void *linker)
{
	struct linker *l;

	SIM_ENTER();
	l = object_get(OBJECT_LINKER, linker, __func__);
	if (l) {
		write_log(l, INFO_LOG, "destroyed", "all");
		end(l);
	}
	return l ? 0 : SIM_INVALID_HANDLE;
}

void linkers_context_gone(const void *context)
{
	struct linker *l = linkers;

	while (l) {
		struct linker *next = l->next;

		if (l->context == context)
			end(l);
		l = next;
	}
}
