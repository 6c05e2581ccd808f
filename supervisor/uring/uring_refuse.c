/*
 * What a program may have set in an io_uring that cannot be read, and so not be set again:
 * buffers to choose from, credentials.
 */
#include "supervisor/uring/uring_refuse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "supervisor/target/memory_limits.h"
#include "supervisor/target/remote_query.h"

struct io_buffer_status {
	uint32_t group, head, reserved[8];
};

/* Ids of groups are the program's to choose, and small ones are what programs choose. */
#define GROUPS 1024

/* EINVAL: buffers of the older kind (IORING_OP_PROVIDE_BUFFERS). */
static bool is_group(int64_t result)
{
	return !result || result == -EINVAL;
}

/* By the only thread that may ask. */
static int ask_issuer_for_groups(struct uring_look *u, const struct io_buffer_status *statuses,
	bool *some, struct err *e)
{
	const size_t size = GROUPS * sizeof(*statuses), page = 4096;
	struct remote_query q[REMOTE_QUERY_MAX] = {0};
	struct remote r;
	uint64_t at;
	int failed;

	if (remote_begin(&r, u->process, u->issuer, e))
		return -1;
	at = remote_scratch(&r, page + size, e);
	failed = !at || tracee_write(u->process->mem_fd, at + page, statuses, size, e);
	for (uint32_t i = 0, count; !failed && i < GROUPS; i += count) {
		count = GROUPS - i < REMOTE_QUERY_MAX ? GROUPS - i : REMOTE_QUERY_MAX;
		for (uint32_t k = 0; k < count; k++)
			q[k] = (struct remote_query){.nr = SYS_io_uring_register,
				.args = {u->s->fd, URING_REGISTER_PBUF_STATUS,
					at + page + (i + k) * sizeof(*statuses), 1}};
		failed = remote_query(&r, q, count, e);
		for (uint32_t k = 0; !failed && k < count; k++)
			*some |= is_group(q[k].result);
	}
	return remote_end(&r, failed ? NULL : e) || failed ? -1 : 0;
}

/* Linux 6.7 and earlier know nothing of the question, and do not look at its address. */
static int find_groups(struct uring_look *u, bool *some, struct err *e)
{
	struct io_buffer_status statuses[GROUPS] = {0};
	int64_t result;

	*some = false;
	for (uint32_t i = 0; i < GROUPS; i++)
		statuses[i].group = i;
	if (uring_ask(u, URING_REGISTER_PBUF_STATUS, 1, 1, &result, e))
		return -1;
	if (result != -EFAULT)
		return 0;
	if (u->issuer)
		return ask_issuer_for_groups(u, statuses, some, e);
	for (uint32_t i = 0; i < GROUPS; i++)
		*some |= is_group(syscall(SYS_io_uring_register, u->s->dup,
					  URING_REGISTER_PBUF_STATUS, &statuses[i], 1)
					  ? -errno
					  : 0);
	return 0;
}

/* Each registration has the next id (io_register_personality() in the kernel), ours too, which
 * is gone at once: *next is what the next one will be if the program makes none. */
static int next_credentials(struct uring_look *u, int64_t *next, struct err *e)
{
	int64_t result = 0;

	if (uring_ask(u, IORING_REGISTER_PERSONALITY, 0, 0, next, e) ||
		(*next > 0 &&
			uring_ask(u, IORING_UNREGISTER_PERSONALITY, 0, *next, &result, e)))
		return -1;
	if (*next < 0 || result < 0)
		return err_set(e, *next < 0 ? -*next : -result,
			"cannot find out whether credentials are registered with it");
	++*next;
	return 0;
}

/* What the ids of rings have come to by our own questions: from one checkpoint to the next. */
struct asked {
	uint64_t inode;
	int64_t next;
};

static struct buf asked_rings;

/* Whether the program has ever registered any. */
static int find_credentials(struct uring_look *u, bool *some, struct err *e)
{
	struct asked ring = {.inode = u->s->st.st_ino, .next = 1}, *known = NULL;
	int64_t next;

	for (size_t i = 0; !known && i < buf_count(&asked_rings, struct asked); i++)
		if (buf_at(&asked_rings, struct asked, i)->inode == ring.inode)
			known = buf_at(&asked_rings, struct asked, i);
	if (next_credentials(u, &next, e))
		return -1;
	*some = next != (known ? known->next : ring.next) + 1;
	/* It says so from now on. */
	if (*some)
		return 0;
	ring.next = next;
	if (known)
		*known = ring;
	else
		buf_push(&asked_rings, struct asked, &ring);
	return 0;
}

/* What nothing shows, the last requests may show. */
static void look_at_requests(const struct ring *r, bool *groups, bool *credentials)
{
	for (uint32_t i = 0; i < r->p.sq_entries; i++) {
		const struct io_uring_sqe *sqe = (void *)(r->sqes + i * ring_sqe_size(r));

		*groups |= sqe->flags & IOSQE_BUFFER_SELECT;
		*credentials |= sqe->personality;
	}
}

/* A restart maps a ring by filling all other addresses (uring/uring_process_restore.c). */
static int refuse_limited(struct err *e)
{
	uint64_t most;

	if (!memory_limits_most(RLIMIT_AS, &most))
		return 0;
	return err_set(e, 0,
		"a restart needs all addresses of its process for a moment to map it, and no "
		"more than %" PRIu64 " KiB are allowed here (RLIMIT_AS): lift the hard limit "
		"(ulimit -Hv) before trecr-run",
		most >> 10);
}

int uring_refuse_rest(struct uring_look *u, struct err *e)
{
	bool groups, credentials;

	if (refuse_limited(e) || find_groups(u, &groups, e) ||
		find_credentials(u, &credentials, e))
		return -1;
	look_at_requests(&u->ring, &groups, &credentials);
	if (groups)
		return err_set(e, 0,
			"it has been given buffers to choose from (IOSQE_BUFFER_SELECT), which "
			"is not supported");
	if (credentials)
		return err_set(e, 0,
			"credentials have been registered with it "
			"(IORING_REGISTER_PERSONALITY), "
			"which is not supported");
	if (u->flags & IORING_SETUP_CQE32 && u->info.overflowed)
		return err_set(e, 0,
			"completions have found no room in it, and of large ones the kernel "
			"does not tell all");
	return 0;
}

int uring_refuse_shared(struct fd_dump *d, const struct uring_look *u, struct err *e)
{
	for (size_t i = 0; i < d->tree->living; i++) {
		const struct process *p = d->tree->processes[i];
		cleanup_free char *path = xasprintf("/proc/%d/fd", p->task);
		DIR *dir = p == u->process ? NULL : opendir(path);
		struct dirent *entry;
		bool shared = false;

		while (dir && (entry = readdir(dir))) {
			struct stat st;

			shared |= !fstatat(dirfd(dir), entry->d_name, &st, 0) &&
				  st.st_ino == u->s->st.st_ino && st.st_dev == u->s->st.st_dev;
		}
		if (dir)
			closedir(dir);
		if (shared)
			return err_set(e, 0,
				"process %d has it as well, and a thread polls it "
				"(IORING_SETUP_SQPOLL), which is not supported",
				p->pid);
	}
	return 0;
}
