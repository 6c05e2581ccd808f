/*
 * gpu_map.c - the pairs of --gpu-map, each GPU by its number or identifier, become one list.
 */
#include "supervisor/split/gpu_map.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "shared/cuda/cuda_state.h"
#include "shared/cuda/device_uuid.h"
#include "supervisor/split/lower_half.h"

#define VARIABLE   "CUDA_VISIBLE_DEVICES"
#define MAX_DIGITS 3

static bool is_number(const char *text, size_t length)
{
	return length && length <= MAX_DIGITS && strspn(text, "0123456789") >= length;
}

static bool is_device(const char *text, size_t length)
{
	return is_number(text, length) ||
	       (length > strlen("GPU-") &&
		       (!strncmp(text, "GPU-", 4) || !strncmp(text, "MIG-", 4)));
}

int gpu_map_option(void *field, const char *value, struct err *e)
{
	for (const char *at = value, *next; at; at = next) {
		size_t length = strcspn(at, ","), old = strcspn(at, ":");

		next = at[length] ? at + length + 1 : NULL;
		if (old + 1 >= length || !is_device(at, old) ||
			!is_device(at + old + 1, length - old - 1))
			return err_set(e, 0,
				"must be pairs OLD:NEW, separated by commas, of numbers or "
				"identifiers (GPU-...) of GPUs");
	}
	*(const char **)field = value;
	return 0;
}

/* What the program has, and what each is to be. */
struct gpu_map {
	uint32_t count;
	struct cuda_device devices[CUDA_DEVICES];
	char *names[CUDA_DEVICES]; /* NULL: not yet */
};

static void map_free(struct gpu_map *m)
{
	for (uint32_t i = 0; i < CUDA_DEVICES; i++)
		free(m->names[i]);
	free(m);
}

static void map_cleanup(struct gpu_map **m)
{
	if (*m)
		map_free(*m);
}

static int read_devices(struct process *p, struct gpu_map *m, struct err *e)
{
	struct {
		uint64_t magic;
		uint32_t version, lock, initialised;
	} head;

	_Static_assert(offsetof(struct cuda_state, initialised) == 16, "");
	if (lower_peek(p->pid, RECORDS_CUDA, &head, sizeof(head)) ||
		head.magic != CUDA_STATE_MAGIC || !head.initialised)
		return 0;
	if (lower_peek(p->pid, RECORDS_CUDA + offsetof(struct cuda_state, device_count),
		    &m->count, sizeof(m->count)) ||
		m->count > CUDA_DEVICES ||
		lower_peek(p->pid, RECORDS_CUDA + offsetof(struct cuda_state, devices),
			m->devices, sizeof(m->devices)))
		return lower_damaged(p->pid, e);
	return 0;
}

/* The program's number for @text; -1: it has none. */
static int find_old(const struct gpu_map *m, const char *text, size_t length)
{
	char uuid[DEVICE_UUID_TEXT];
	uint32_t i = 0;

	if (is_number(text, length))
		return (uint32_t)atoi(text) < m->count ? atoi(text) : -1;
	for (; i < m->count; i++) {
		device_uuid_text(m->devices[i].uuid, uuid);
		if (!strncmp(uuid, text, length))
			break;
	}
	return i < m->count ? (int)i : -1;
}

/* A number counts what our own environment shows. NULL: it does not show as many. */
static char *new_name(const char *text, size_t length)
{
	const char *visible = getenv(VARIABLE);
	unsigned number = atoi(text);

	if (!visible || !is_number(text, length))
		return xasprintf("%.*s", (int)length, text);
	while (number-- && visible)
		visible = strchr(visible, ',') ? strchr(visible, ',') + 1 : NULL;
	return visible && strcspn(visible, ",")
		       ? xasprintf("%.*s", (int)strcspn(visible, ","), visible)
		       : NULL;
}

static int take_pair(struct gpu_map *m, const char *pair, size_t length, struct err *e)
{
	size_t old = strcspn(pair, ":");
	int i = find_old(m, pair, old);
	char *name;

	if (i < 0)
		return err_set(e, 0, "--gpu-map: the program has no GPU %.*s, but %u: 0 to %u",
			(int)old, pair, m->count, m->count - 1);
	if (m->names[i])
		return err_set(e, 0, "--gpu-map has GPU %d of the program twice", i);
	name = new_name(pair + old + 1, length - old - 1);
	if (!name)
		return err_set(e, 0, "--gpu-map: " VARIABLE "=%s shows no GPU %.*s",
			getenv(VARIABLE), (int)(length - old - 1), pair + old + 1);
	m->names[i] = name;
	for (uint32_t k = 0; k < m->count; k++)
		if ((int)k != i && m->names[k] && !strcmp(m->names[k], name))
			return err_set(e, 0,
				"--gpu-map gives GPU %s to two of the program's GPUs, %u and "
				"%d",
				name, k, i);
	return 0;
}

int gpu_map_variable(struct process *p, const char *map, char **variable, struct err *e)
{
	__attribute__((cleanup(map_cleanup))) struct gpu_map *m = xcalloc(1, sizeof(*m));

	*variable = NULL;
	if (read_devices(p, m, e))
		return -1;
	if (!m->count)
		return 0;
	for (const char *at = map, *next; at; at = next) {
		size_t length = strcspn(at, ",");

		next = at[length] ? at + length + 1 : NULL;
		if (take_pair(m, at, length, e))
			return -1;
	}
	*variable = xstrdup(VARIABLE "=");
	for (uint32_t i = 0; i < m->count; i++) {
		char *longer;

		if (!m->names[i])
			return err_set(e, 0,
				"--gpu-map does not say what GPU %u of the program is to be: "
				"the "
				"program has %u GPUs",
				i, m->count);
		longer = xasprintf("%s%s%s", *variable, i ? "," : "", m->names[i]);
		free(*variable);
		*variable = longer;
	}
	return 0;
}
