/*
 * uring_fdinfo.c - the parser, and questions about what it has found.
 */
#include "supervisor/uring/uring_fdinfo.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#include "lib/procfs.h"

/* While the kernel is busy with a ring it shows less of it. */
#define ATTEMPTS 1000

static uint32_t count_lines(const char *text, const char *heading, const char *start)
{
	const char *p = strstr(text, heading);
	uint32_t count = 0;

	for (p = p ? strchr(p + 1, '\n') : NULL; p && !strncmp(p + 1, start, strlen(start));
		p = strchr(p + 1, '\n'))
		count++;
	return count;
}

static void parse_info(struct uring_info *i)
{
	const char *text = i->text;

	i->sq_entries = status_number(text, "SqMask", 16) + 1;
	i->cq_entries = status_number(text, "CqMask", 16) + 1;
	i->sq_head = status_number(text, "CachedSqHead", 10);
	i->sq_tail = status_number(text, "SqTail", 10);
	i->cq_tail = status_number(text, "CachedCqTail", 10);
	i->sq_thread = status_number(text, "SqThread", 10);
	i->files = status_number(text, "UserFiles", 10);
	i->buffers = status_number(text, "UserBufs", 10);
	i->polls = count_lines(text, "\nPollList:", "  op=");
	i->overflowed = count_lines(text, "\nCqOverflowList:", "  user_data=");
}

int uring_info_read(struct uring_info *i, pid_t task, int fd, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fdinfo/%d", task, fd);
	size_t len;

	memset(i, 0, sizeof(*i));
	for (int k = 0; k < ATTEMPTS; k++) {
		free(i->text);
		i->text = NULL;
		if (read_file(path, &i->text, &len, e))
			return -1;
		if (!strstr(i->text, "\nCachedCqTail:"))
			return err_set(e, 0, "this kernel does not show its counters");
		if (strstr(i->text, "\nSqThread:") && strstr(i->text, "\nCqOverflowList:")) {
			parse_info(i);
			return 0;
		}
		sched_yield();
	}
	return err_set(e, 0, "the kernel is always busy with it");
}

void uring_info_release(struct uring_info *i)
{
	free(i->text);
	i->text = NULL;
}

void uring_info_count_polls(const struct uring_info *i, uint32_t counts[256])
{
	const char *p = strstr(i->text, "\nPollList:");
	unsigned op;

	for (p = p ? strchr(p + 1, '\n') : NULL; p && sscanf(p, "\n op=%u", &op) == 1;
		p = strchr(p + 1, '\n'))
		counts[op & 255]++;
}

const char *uring_info_overflow(
	const struct uring_info *i, const char *last, struct uring_completion *c)
{
	const char *p = last ? last : strstr(i->text, "\nCqOverflowList:");

	p = p ? strchr(p + 1, '\n') : NULL;
	return p && sscanf(p, "\n user_data=%" SCNu64 ", res=%d, flags=%x", &c->user_data,
			    &c->result, &c->flags) == 3
		       ? p
		       : NULL;
}

char *uring_info_slot(const struct uring_info *i, const char *key, uint32_t *slot)
{
	const char *p = status_value(i->text, key);
	uint32_t number;
	int at;

	/* "    7: /path", and where a slot is shown that is free: "<none>". */
	while ((p = strchr(p, '\n'))) {
		p++;
		at = 0;
		if (*p != ' ' || sscanf(p, "%" SCNu32 ": %n", &number, &at) != 1 || !at)
			return NULL;
		if (number < *slot || !strncmp(p + at, "<none>", 6))
			continue;
		*slot = number;
		return xasprintf("%.*s", (int)strcspn(p + at, "\n"), p + at);
	}
	return NULL;
}
