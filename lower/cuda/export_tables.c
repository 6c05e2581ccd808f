/*
 * export_tables.c - the program holds addresses of the driver's tables of functions
 * (stubs/cuda/export_table.c). Another build of the driver has these tables elsewhere. So it lies at
 * another place than the one before, and where the tables were there are pages with copies of them,
 * whose functions are entry points of the stub as before. What those lead to is exchanged: for the
 * function in the same place of the same table of this driver.
 *
 * That functions in the same places are the same is an assumption: a table of the same name and size
 * has not been seen to change. It is for restarts that the user has allowed (--gpu-other).
 */
#include "lower/cuda/export_tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lower/cuda/cuda.h"
#include "shared/records.h"

#define PAGE 4096ul

static int table_refused(const struct cuda_table *t, const char *what)
{
	char name[33];

	for (int i = 0; i < 16; i++)
		snprintf(name + 2 * i, 3, "%02x", t->id[i]);
	return agent_fail(
		"the program uses table %s of the GPU driver, which %s: restart it with "
		"the driver that it had",
		name, what);
}

static int is_in(const struct cuda_table *t, void *const *word)
{
	return word >= t->words && word < t->words + t->count;
}

/* One function may be in several slots. In the driver here it has to be one, too. */
static int lead_to(const struct cuda_table *t, const struct cuda_patch *p, void *function)
{
	if (p->leads[0] && *p->leads[0] == p->before)
		*p->leads[0] = function;
	if (p->leads[1] && *p->leads[1] == p->before)
		*p->leads[1] = function;
	if (p->leads[0] && *p->leads[0] != function)
		return table_refused(t,
			"has functions in common here that were different ones, or "
			"the other way round");
	return 0;
}

/* @now: the table of the driver here. What has no function had none, and is the same. */
static int compare_table(const struct cuda_table *t, void *const *now)
{
	for (unsigned i = 0; i < t->count; i++) {
		const struct cuda_patch *p = CUDA_STATE->patches;

		while (p && p->word != &t->words[i])
			p = p->next;
		if (p ? !in_lower_window((uintptr_t)now[i]) : now[i] != t->driver[i])
			return table_refused(t, "is of another form here");
	}
	return 0;
}

static int renew_table(struct cuda_table *t)
{
	void *const *now = NULL;
	int r = CUDA(cuGetExportTable, (const void **, const void *))(
		(const void **)&now, t->id);

	if (r || !now)
		return table_refused(t, "does not exist here");
	if (compare_table(t, now))
		return -1;
	for (struct cuda_patch *p = CUDA_STATE->patches; p; p = p->next) {
		int as_it_is = p->before == p->after;
		void *function;

		if (!is_in(t, p->word))
			continue;
		function = now[p->word - t->words];
		if (lead_to(t, p, function))
			return -1;
		p->before = function;
		if (as_it_is)
			p->after = function;
	}
	t->moved = 1;
	return 0;
}

/* Pages may have been mapped for another table. */
static int map_pages(const struct cuda_table *t)
{
	uintptr_t at = (uintptr_t)t->words & ~(PAGE - 1);
	uintptr_t end = (uintptr_t)(t->words + t->count);

	for (; at < end; at += PAGE) {
		int is_ours = 0;
		void *page;

		for (const struct cuda_table *o = CUDA_STATE->tables; o != t; o = o->next)
			is_ours |= o->moved && (uintptr_t)o->words < at + PAGE &&
				   (uintptr_t)(o->words + o->count) > at;
		if (is_ours)
			continue;
		page = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (page != (void *)at)
			return agent_fail(
				"the pages at %#lx that the program has a table of the "
				"GPU driver in are taken: %s",
				at, strerror(errno));
	}
	return 0;
}

static int fill_table(const struct cuda_table *t)
{
	if (map_pages(t))
		return -1;
	memcpy(t->words, t->driver, t->count * sizeof(*t->words));
	for (const struct cuda_patch *p = CUDA_STATE->patches; p; p = p->next)
		if (is_in(t, p->word))
			*p->word = p->after;
	return 0;
}

int export_tables_replay(void)
{
	for (struct cuda_table *t = CUDA_STATE->tables; t && RECORDS->another_driver;
		t = t->next)
		if (renew_table(t))
			return -1;
	for (const struct cuda_table *t = CUDA_STATE->tables; t; t = t->next)
		if (t->moved && fill_table(t))
			return -1;
	return 0;
}
