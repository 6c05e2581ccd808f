/*
 * seccomp.c - filters read by ptrace(2), held off while calls are run in the program, and set
 * again by the loader.
 */
#include "supervisor/state/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/procfs.h"

/* ---- checkpoint ---- */

/* Filters can only be added: as many as we have are ours, which a container has put all of its
 * processes under. They come from the process that restarts the program. */
static bool has_own(const char *status, const char *mine)
{
	if (!status_number(status, "Seccomp", 10))
		return false;
	return status_number(mine, "Seccomp", 10) != status_number(status, "Seccomp", 10) ||
	       status_number(mine, "Seccomp_filters", 10) !=
		       status_number(status, "Seccomp_filters", 10) ||
	       !*status_value(status, "Seccomp_filters");
}

int seccomp_suspend(struct process *p, struct thread *t, const char *own_status, struct err *e)
{
	t->seccomp = 0;
	if (!has_own(t->status, own_status))
		return 0;
	t->seccomp = status_number(t->status, "Seccomp", 10);
	if (!tracee_suspend_seccomp(&t->tracee, false, e))
		return 0;
	return err_prefix(e,
		"process %d (%s) has put itself under seccomp, which only root outside of "
		"containers can save",
		p->pid, p->comm);
}

/* Many threads have the same: saved once. */
static uint32_t add_code(struct buf *all, const uint64_t *code, size_t count)
{
	const uint64_t *old = all->data;
	size_t have = buf_count(all, uint64_t);

	for (size_t i = 0; i + count <= have; i++)
		if (!memcmp(&old[i], code, count * sizeof(*code)))
			return i;
	buf_add(all, code, count * sizeof(*code));
	return have;
}

static int dump_filter(struct thread *t, unsigned number, struct buf *code,
	struct image_writer *w, bool *more, struct err *e)
{
	struct image_filter filter = {.tid = t->vtid};
	uint64_t one[BPF_MAXINSNS];
	int count = tracee_get_filter(&t->tracee, number, one, &filter.flags, e);

	*more = count > 0;
	if (count <= 0)
		return count;
	filter.first = add_code(code, one, count);
	filter.count = count;
	image_writer_note(w, IMAGE_NOTE_FILTERS, &filter, sizeof(filter));
	return 0;
}

static int dump_thread(
	struct thread *t, struct buf *code, struct image_writer *w, struct err *e)
{
	struct image_filter strict = {.tid = t->vtid};
	bool more = true;

	if (t->seccomp == SECCOMP_MODE_STRICT) {
		image_writer_note(w, IMAGE_NOTE_FILTERS, &strict, sizeof(strict));
		return 0;
	}
	for (unsigned n = 0; more; n++)
		if (dump_filter(t, n, code, w, &more, e))
			return -1;
	return 0;
}

int seccomp_dump(struct process *p, struct image_writer *w, struct err *e)
{
	cleanup_buf struct buf code = {0};

	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].seccomp)
			image_writer_incompat(w, IMAGE_INCOMPAT_FILTERS);
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].seccomp && dump_thread(&p->threads[i], &code, w, e))
			return err_prefix(e, "process %d (%s)", p->pid, p->comm);
	if (code.len)
		image_writer_note(w, IMAGE_NOTE_FILTER_CODE, code.data, code.len);
	return 0;
}

/* ---- restart ---- */

static const struct image_filter *filters_of(const struct image *img, size_t *count)
{
	return image_note_array(img, IMAGE_NOTE_FILTERS, struct image_filter, count);
}

int seccomp_suspend_new(struct tracee *t, const struct image *img, struct err *e)
{
	size_t count;

	(void)filters_of(img, &count);
	if (!count || !tracee_suspend_seccomp(t, true, e))
		return 0;
	return err_prefix(e, "only root outside of containers can bring seccomp filters back");
}

void seccomp_plan(struct plan *p, struct batch_builder *b, const struct image *img, int32_t tid)
{
	const struct image_filter *f;
	const uint64_t *code;
	size_t count, all;

	code = image_note_array(img, IMAGE_NOTE_FILTER_CODE, uint64_t, &all);
	f = filters_of(img, &count);
	for (size_t i = 0; i < count; i++) {
		struct sock_fprog program = {.len = f[i].count};

		if (f[i].tid != tid)
			continue;
		if (!f[i].count) {
			BATCH_ADD(b, "enter seccomp's strict mode", SYS_prctl, PR_SET_SECCOMP,
				SECCOMP_MODE_STRICT);
			continue;
		}
		program.filter =
			(void *)plan_data(p, &code[f[i].first], f[i].count * sizeof(*code));
		BATCH_ADD(b, "set a seccomp filter", SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			f[i].flags, plan_data(p, &program, sizeof(program)));
	}
}
