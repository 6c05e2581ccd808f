/*
 * gpu_map.c - the pairs of --gpu-map, each GPU by its number or identifier, become one list.
 */
#include "supervisor/split/gpu_map.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/notices.h"
#include "lib/util.h"
#include "shared/cuda/cuda_state.h"
#include "shared/cuda/device_uuid.h"
#include "shared/launcher_variables.h"
#include "shared/records.h"
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

/* What a process has, and what each is to be. */
struct devices {
	pid_t pid;
	int vpid;
	const char *comm;
	char *visible;  /* its variable; NULL: it has none */
	uint32_t count; /* 0: it has not asked for GPUs yet */
	struct cuda_device list[CUDA_DEVICES];
	char *names[CUDA_DEVICES]; /* NULL: not yet */
	char **variable;           /* for the caller */
};

struct gpu_map {
	struct devices *processes;
	size_t count;
	const struct gpu_map_options *o;
};

static void map_cleanup(struct gpu_map *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->processes[i].visible);
		for (uint32_t k = 0; k < CUDA_DEVICES; k++)
			free(m->processes[i].names[k]);
	}
	free(m->processes);
}

/* ---- what there is ---- */

static int read_devices(struct devices *d, struct err *e)
{
	struct {
		uint64_t magic;
		uint32_t version, lock, initialised;
	} head;

	_Static_assert(offsetof(struct cuda_state, initialised) == 16, "");
	if (lower_peek(d->pid, RECORDS_CUDA, &head, sizeof(head)) ||
		head.magic != CUDA_STATE_MAGIC || !head.initialised)
		return 0;
	if (lower_peek(d->pid, RECORDS_CUDA + offsetof(struct cuda_state, device_count),
		    &d->count, sizeof(d->count)) ||
		d->count > CUDA_DEVICES ||
		lower_peek(d->pid, RECORDS_CUDA + offsetof(struct cuda_state, devices), d->list,
			sizeof(d->list)))
		return lower_damaged(d->pid, e);
	return 0;
}

/* Of @length bytes of variables, each ended by 0. */
static char *find_visible(const char *text, size_t length)
{
	for (const char *at = text; at < text + length; at += strlen(at) + 1)
		if (variable_is_same(at, VARIABLE "="))
			return xstrdup(strchr(at, '=') + 1);
	return NULL;
}

/* By an earlier restart, or as it was started. */
static char *visible_to(pid_t pid)
{
	cleanup_free struct records_launcher *l = xcalloc(1, sizeof(*l));
	cleanup_free char *path = xasprintf("/proc/%d/environ", pid);
	cleanup_free char *text = NULL;
	char *given = NULL;
	size_t length;

	if (!lower_peek(pid, RECORDS_LAUNCHER, l, sizeof(*l)) && l->given &&
		l->size < sizeof(l->text)) {
		l->text[l->size] = 0;
		given = find_visible(l->text, l->size);
	}
	return given || read_file(path, &text, &length, NULL) ? given
							      : find_visible(text, length);
}

static int read_processes(struct gpu_map *m, const struct gpu_map_process *list, struct err *e)
{
	for (size_t i = 0; i < m->count; i++) {
		struct devices *d = &m->processes[i];
		const struct process *p = list[i].process;

		d->pid = p->pid;
		d->vpid = p->vpid;
		d->comm = p->comm;
		d->variable = list[i].variable;
		d->visible = visible_to(d->pid);
		if (read_devices(d, e))
			return -1;
	}
	return 0;
}

/* ---- the pairs ---- */

static bool is_like(const struct cuda_device *d, const char *text, size_t length)
{
	char uuid[DEVICE_UUID_TEXT];

	device_uuid_text(d->uuid, d->name, uuid);
	return !strncmp(uuid, text, length);
}

/* The number of the process for @text; -1: it has none. */
static int find_old(const struct devices *d, const char *text, size_t length)
{
	uint32_t i = 0;

	if (is_number(text, length))
		return (uint32_t)atoi(text) < d->count ? atoi(text) : -1;
	while (i < d->count && !is_like(&d->list[i], text, length))
		i++;
	return i < d->count ? (int)i : -1;
}

static bool has_same(const struct devices *a, const struct devices *b)
{
	bool same = a->count == b->count;

	for (uint32_t i = 0; same && i < a->count; i++)
		same = !memcmp(a->list[i].uuid, b->list[i].uuid, sizeof(a->list[i].uuid));
	return same;
}

/* The first that has GPUs. */
static const struct devices *any_devices(const struct gpu_map *m)
{
	size_t i = 0;

	while (i < m->count && !m->processes[i].count)
		i++;
	return i < m->count ? &m->processes[i] : NULL;
}

/* Numbers mean something where all have the same. */
static int check_number(const struct gpu_map *m, const struct devices *any, struct err *e)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->processes[i].count && !has_same(any, &m->processes[i]))
			return err_set(e, 0,
				"--gpu-map: processes of the program have different GPUs: say "
				"which by identifiers (GPU-...) in place of numbers");
	return 0;
}

/* The beginning of an identifier means something where one GPU has it. */
static int check_identifier(
	const struct gpu_map *m, const char *text, size_t length, struct err *e)
{
	const struct cuda_device *first = NULL;

	for (size_t i = 0; i < m->count; i++)
		for (uint32_t k = 0; k < m->processes[i].count; k++) {
			const struct cuda_device *d = &m->processes[i].list[k];

			if (!is_like(d, text, length))
				continue;
			if (first && memcmp(first->uuid, d->uuid, sizeof(d->uuid)))
				return err_set(e, 0,
					"--gpu-map: more than one GPU of the program begins "
					"with %.*s",
					(int)length, text);
			first = d;
		}
	return 0;
}

/* A number counts what our own environment shows. NULL: it does not show as many. */
static char *new_name(const char *text, size_t length)
{
	const char *visible = getenv(VARIABLE);
	unsigned number = atoi(text);

	if (!is_number(text, length))
		return xasprintf("%.*s", (int)length, text);
	if (!visible)
		return xasprintf("%u", number);
	while (number-- && visible)
		visible = strchr(visible, ',') ? strchr(visible, ',') + 1 : NULL;
	return visible && strcspn(visible, ",")
		       ? xasprintf("%.*s", (int)strcspn(visible, ","), visible)
		       : NULL;
}

static int set_name(struct devices *d, int i, const char *name, struct err *e)
{
	if (d->names[i])
		return err_set(e, 0, "--gpu-map has GPU %d of the program twice", i);
	for (uint32_t k = 0; k < d->count; k++)
		if (d->names[k] && !strcmp(d->names[k], name))
			return err_set(e, 0,
				"--gpu-map gives GPU %s to two of the program's GPUs, %u and "
				"%d",
				name, k, i);
	d->names[i] = xstrdup(name);
	return 0;
}

static int no_such(const struct gpu_map *m, const struct devices *any, const char *pair,
	size_t old, struct err *e)
{
	if (m->o->of_job && !is_number(pair, old))
		return 0; /* another member's */
	if (check_number(m, any, NULL))
		return err_set(e, 0, "--gpu-map: no process of the program has a GPU %.*s",
			(int)old, pair);
	return err_set(e, 0, "--gpu-map: the program has no GPU %.*s, but %u: 0 to %u",
		(int)old, pair, any->count, any->count - 1);
}

static int take_pair(struct gpu_map *m, const char *pair, size_t length, struct err *e)
{
	const struct devices *any = any_devices(m);
	size_t old = strcspn(pair, ":");
	cleanup_free char *name = new_name(pair + old + 1, length - old - 1);
	bool found = false;

	if (is_number(pair, old) ? check_number(m, any, e) : check_identifier(m, pair, old, e))
		return -1;
	if (!name)
		return err_set(e, 0, "--gpu-map: " VARIABLE "=%s shows no GPU %.*s",
			getenv(VARIABLE), (int)(length - old - 1), pair + old + 1);
	for (size_t k = 0; k < m->count; k++) {
		int i = find_old(&m->processes[k], pair, old);

		if (i >= 0 && set_name(&m->processes[k], i, name, e))
			return -1;
		found |= i >= 0;
	}
	return found ? 0 : no_such(m, any, pair, old, e);
}

/* ---- the variables ---- */

static int make_variable(const struct devices *d, struct err *e)
{
	char *variable = d->count ? xstrdup(VARIABLE "=") : NULL;

	for (uint32_t i = 0; i < d->count; i++) {
		char *longer;

		if (!d->names[i]) {
			free(variable);
			return err_set(e, 0,
				"--gpu-map does not say what GPU %u of the program is to be: "
				"the program has %u GPUs",
				i, d->count);
		}
		longer = xasprintf("%s%s%s", variable, i ? "," : "", d->names[i]);
		free(variable);
		variable = longer;
	}
	*d->variable = variable;
	return 0;
}

static bool sees_same(const struct devices *a, const struct devices *b)
{
	return a->visible && b->visible ? !strcmp(a->visible, b->visible)
					: !a->visible && !b->visible;
}

/* Whether it may come to use GPUs. */
static bool has_library(const struct devices *d)
{
	cleanup_free char *path = xasprintf("/proc/%d/maps", d->pid);
	cleanup_free char *text = NULL;
	size_t length;

	return !read_file(path, &text, &length, NULL) && strstr(text, "/libcuda.so.1\n");
}

/* What has not asked for GPUs yet is to see the same as what had the same variable. */
static void share_variable(const struct gpu_map *m, const struct devices *d)
{
	size_t i = 0;

	while (i < m->count && !(m->processes[i].count && sees_same(&m->processes[i], d)))
		i++;
	if (i < m->count)
		*d->variable = xstrdup(*m->processes[i].variable);
	else if (m->o->notice)
		notice_printf(m->o->notice,
			"process %d (%s): it has not asked for GPUs yet, and --gpu-map does "
			"not "
			"change which it will see",
			d->vpid, d->comm);
}

static int make_variables(const struct gpu_map *m, struct err *e)
{
	for (size_t i = 0; i < m->count; i++)
		if (make_variable(&m->processes[i], e))
			return -1;
	for (size_t i = 0; i < m->count; i++)
		if (!m->processes[i].count && has_library(&m->processes[i]))
			share_variable(m, &m->processes[i]);
	return 0;
}

int gpu_map_variables(const struct gpu_map_process *list, size_t count,
	const struct gpu_map_options *o, struct err *e)
{
	__attribute__((cleanup(map_cleanup))) struct gpu_map m = {
		.processes = xcalloc(count, sizeof(*m.processes)), .count = count, .o = o};

	for (size_t i = 0; i < count; i++)
		*list[i].variable = NULL;
	if (read_processes(&m, list, e))
		return -1;
	for (const char *at = any_devices(&m) ? o->map : NULL, *next; at; at = next) {
		size_t length = strcspn(at, ",");

		next = at[length] ? at + length + 1 : NULL;
		if (take_pair(&m, at, length, e))
			return -1;
	}
	return make_variables(&m, e);
}
