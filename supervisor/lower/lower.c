#include "supervisor/lower/lower.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static bool read_at(pid_t pid, uint64_t address, void *data, size_t size)
{
	struct iovec local = {data, size}, remote = {(void *)address, size};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

void lower_find(struct process *p)
{
	struct records r;

	/* A child of fork(2) finds its parent's wiped. */
	if (!read_at(p->pid, RECORDS_LIVE, &r, sizeof(r)) || r.magic != RECORDS_MAGIC ||
		r.version != RECORDS_VERSION || r.lower == RECORDS_NONE) {
		/* Or it shared its parent's memory, and has executed a program since. */
		lower_free(p->lower);
		p->lower = NULL;
		return;
	}
	if (!p->lower) {
		p->lower = xcalloc(1, sizeof(*p->lower));
		p->lower->order_fd = p->lower->done_fd = -1;
		pthread_mutex_init(&p->lower->staging.lock, NULL);
	}
	p->lower->info = r.info;
	p->lower->state = r.lower;
	p->lower->helper = r.helper;
}

void lower_free(struct lower_half *lower)
{
	if (!lower)
		return;
	buf_free(&lower->tids);
	if (lower->order_fd >= 0)
		close(lower->order_fd);
	if (lower->done_fd >= 0)
		close(lower->done_fd);
	if (lower->staging.data)
		munmap(lower->staging.data, lower->staging.size);
	pthread_mutex_destroy(&lower->staging.lock);
	free(lower);
}

bool lower_owns(const struct process *p, pid_t tid)
{
	for (size_t i = 0; p->lower && i < buf_count(&p->lower->tids, pid_t); i++)
		if (*buf_at(&p->lower->tids, pid_t, i) == tid)
			return true;
	return false;
}
