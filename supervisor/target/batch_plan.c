/*
 * batch_plan.c - calls, data and places for results are appended, and addresses filled in.
 */
#include "supervisor/target/batch_plan.h"

#include <string.h>

#include "lib/limits.h"
#include "supervisor/target/tracee.h"

struct batch_call *batch_add(
	struct batch_builder *b, const char *what, long nr, const uint64_t args[6])
{
	struct batch_call *c = buf_grow(&b->calls, sizeof(*c));

	c->nr = nr;
	for (int i = 0; i < 6; i++)
		c->args[i] = args[i];
	buf_push(&b->what, const char *, &what);
	return c;
}

void batch_free(struct batch_builder *b)
{
	buf_free(&b->calls);
	buf_free(&b->what);
}

static uint64_t plan_align(struct plan *p, size_t to)
{
	buf_grow(&p->data, align_up(p->data.len, to) - p->data.len);
	return LOADER_RANGE + PLAN_OFFSET + p->shift + p->data.len;
}

uint64_t plan_data(struct plan *p, const void *data, size_t size)
{
	uint64_t at = plan_align(p, 16);

	buf_add(&p->data, data, size);
	return at;
}

uint64_t plan_string(struct plan *p, const char *s)
{
	return plan_data(p, s, strlen(s) + 1);
}

uint64_t plan_batch(struct plan *p, const struct batch_builder *b, enum batch_end end)
{
	struct batch head = {
		.count = buf_count(&b->calls, struct batch_call),
		.end = end,
		.copier = (struct batch_copier *)b->copier,
		.buffer = b->buffer,
	};
	uint64_t at = plan_data(p, &head, sizeof(head));

	buf_add(&p->data, b->calls.data, b->calls.len);
	return at;
}

uint64_t plan_stack(struct plan *p, size_t size, uint64_t batch)
{
	uint64_t top[2] = {batch, 0};
	uint64_t at = plan_align(p, 16);

	buf_grow(&p->data, size - sizeof(top));
	buf_add(&p->data, top, sizeof(top));
	return at + size - sizeof(top);
}

int plan_result(int mem_fd, uint64_t address, const struct batch_builder *b,
	struct plan_failure *f, struct err *e)
{
	size_t planned = buf_count(&b->what, const char *);
	struct batch head;

	if (tracee_read(mem_fd, address, &head, sizeof(head), e))
		return -1;
	if (head.count == planned && head.done == planned)
		return 0;
	if (head.done >= planned)
		return err_set(e, 0,
			"the loader in the new process reports an impossible result (a bug in "
			"trecr)");
	f->nth = head.done;
	return tracee_read(mem_fd, address + sizeof(head) + f->nth * sizeof(f->call), &f->call,
		       sizeof(f->call), e)
		       ? -1
		       : 1;
}

int plan_err(const struct batch_builder *b, const struct plan_failure *f, struct err *e)
{
	const char *const *what = b->what.data;
	const struct batch_call *c = &f->call;

	return limit_err(e, c->result < 0 ? -c->result : 0, c->nr,
		"cannot %s (system call %lu with %#lx, %#lx, %#lx gave %ld)", what[f->nth],
		c->nr, c->args[0], c->args[1], c->args[2], c->result);
}

int plan_check(int mem_fd, uint64_t address, const struct batch_builder *b, struct err *e)
{
	struct plan_failure f;
	int r = plan_result(mem_fd, address, b, &f, e);

	return r > 0 ? plan_err(b, &f, e) : r;
}
