/*
 * fd_cycle.h - a process with descriptors is saved, and made again in another one.
 *
 * A scenario's setup() runs in a victim, its check() in the victim after it was saved (which
 * must not have changed anything) and in the restored process. Both find the scratch directory
 * as their working directory, and what they have to remember in *memo.
 */
#ifndef T_UNIT_FD_CYCLE_H
#define T_UNIT_FD_CYCLE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ckpt/blocks.h"
#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/fd_table/kind_table.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/shared_mapping.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

#define LIMIT   600 /* descriptors from here on are the test's own */
#define CONTROL 700
#define SECONDS 30 /* a read that waits for ever ends its process */

struct memo {
	char differs[2000];
	uint64_t number[16];
	char text[4096];
	uint64_t map_start[4]; /* shared mappings to be saved, 0: none */
	uint64_t map_size[4];
	uint32_t map_object[4];
	int std[3]; /* streams of the restored process */
};

static struct memo *memo;
static bool own_streams; /* the victim gets ours, else /dev/null */

__attribute__((format(printf, 1, 2), unused)) static void differs(const char *fmt, ...)
{
	size_t n = strlen(memo->differs);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(memo->differs + n, sizeof(memo->differs) - n, fmt, ap);
	va_end(ap);
	n = strlen(memo->differs);
	snprintf(memo->differs + n, sizeof(memo->differs) - n, "; ");
}

#define EXPECT(is, want)                                                                       \
	do {                                                                                   \
		long long is_ = (is), want_ = (want);                                          \
		if (is_ != want_)                                                              \
			differs("line %d: %s is %lld, not %lld", __LINE__, #is, is_, want_);   \
	} while (0)

/* @fd, which must have been opened, under number @number. */
__attribute__((unused)) static void put_at(int number, int fd)
{
	if (fd < 0 || dup2(fd, number) < 0)
		differs("setup of %d: %s", number, strerror(errno));
	if (fd != number)
		close(fd);
}

struct victim {
	pid_t pid;
	int go; /* a byte lets it go on */
};

static struct victim victim_start(void (*setup)(void), void (*check)(void))
{
	int ready[2], go[2];
	struct victim v;
	char c;

	if (pipe2(ready, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		abort();
	memset(memo, 0, sizeof(*memo));
	v.pid = fork();
	if (!v.pid) {
		dup2(ready[1], CONTROL);
		dup2(go[0], CONTROL + 1);
		alarm(SECONDS);
		close_range(3, CONTROL - 1, 0);
		close_range(CONTROL + 2, ~0u, 0);
		for (int i = 0; !own_streams && i < 3; i++)
			put_at(i, open("/dev/null", O_RDWR));
		setup();
		(void)!write(CONTROL, "r", 1);
		if (read(CONTROL + 1, &c, 1) == 1 && check)
			check();
		_exit(0);
	}
	close(ready[1]);
	close(go[0]);
	v.go = go[1];
	/* End of file: it died, and the dump will say so. */
	(void)!read(ready[0], &c, 1);
	close(ready[0]);
	return v;
}

static void victim_end(struct victim *v, bool check)
{
	if (check)
		(void)!write(v->go, "g", 1);
	else
		kill(v->pid, SIGKILL);
	close(v->go);
	waitpid(v->pid, NULL, 0);
}

static struct image_writer *open_writer(int dir, const char *name, enum image_file_kind kind)
{
	static const uint8_t id[16] = "fd cycle";
	struct image_writer *w = image_writer_open(dir, name, kind, id, name, NULL);
	struct image_chain link = {0};

	memcpy(link.checkpoint_id, id, sizeof(id));
	link.name = image_writer_string(w, "ckpt-000001");
	image_writer_note(w, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	return w;
}

static int read_process(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	const int64_t *from = context;
	cleanup_free char *path = xasprintf("/proc/%d/mem", (int)from[0]);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	return pread_all(fd, data, size, address + from[1], path, e);
}

static int save_mapping(struct fd_dump *d, pid_t pid, const struct vma *v, int i,
	struct image_writer *job, struct image_writer *process, struct err *e)
{
	struct image_region region = {
		.start = v->start,
		.end = v->end,
		.kind = IMAGE_REGION_SHARED,
	};
	int64_t from[2] = {pid, v->start - v->offset};
	struct block_run run = {
		.address = v->offset,
		.size = v->end - v->start,
		.read = read_process,
		.context = from,
	};
	struct blocks_to_write blocks = {.runs = &run, .run_count = 1, .writer = job};
	bool need_memory;
	int object = fd_dump_mapping(d, pid, v, &need_memory, e);
	struct fd_object *o;

	if (object < 0)
		return -1;
	region.object = run.object = memo->map_object[i] = object;
	/* fd_dump_mapped() would have the process, which is not stopped here, map it once more. */
	o = fd_object_at(d, object);
	if (need_memory && o->o.size < v->offset + run.size)
		o->o.size = v->offset + run.size;
	image_writer_note(process, IMAGE_NOTE_REGIONS, &region, sizeof(region));
	return need_memory ? blocks_write(&blocks, e) : 0;
}

static int save_mappings(struct fd_dump *d, pid_t pid, struct image_writer *job,
	struct image_writer *process, struct err *e)
{
	struct vma_list list;
	int r = procfs_vmas(pid, &list, e);

	for (size_t k = 0; !r && k < list.count; k++)
		for (int i = 0; !r && i < 4; i++)
			if (memo->map_start[i] && list.v[k].start == memo->map_start[i])
				r = save_mapping(d, pid, &list.v[k], i, job, process, e);
	vma_list_free(&list);
	return r;
}

static void add_notes(struct image_writer *job, struct image_writer *process, pid_t pid)
{
	struct image_job info = {.process_count = 1};
	struct image_job_process entry = {.pid = pid};
	struct image_process state = {.pid = pid};
	struct image_thread thread = {.tid = pid};

	image_writer_note(job, IMAGE_NOTE_JOB, &info, sizeof(info));
	image_writer_note(job, IMAGE_NOTE_PROCESSES, &entry, sizeof(entry));
	image_writer_note(process, IMAGE_NOTE_PROCESS, &state, sizeof(state));
	image_writer_note(process, IMAGE_NOTE_THREADS, &thread, sizeof(thread));
}

/* Save @pid into the scratch directory. */
static int save(pid_t pid, struct err *e)
{
	cleanup_free char *name = xasprintf("%d", pid);
	struct image_writer *job, *process;
	cleanup_fd int dir = -1;
	struct fd_dump *d;
	int r;

	(void)!system("rm -rf images");
	if (mkdir("images", 0700) || mkdir("images/ckpt-000001", 0700))
		return err_set(e, errno, "images");
	dir = open("images/ckpt-000001", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	job = open_writer(dir, IMAGE_JOB_FILE, IMAGE_FILE_JOB);
	process = open_writer(dir, name, IMAGE_FILE_PROCESS);
	d = fd_dump_new(job, FD_TCP_REFUSE);
	r = fd_dump_process(d, pid, process, LIMIT, e) ||
	    save_mappings(d, pid, job, process, e) || fd_dump_finish(d, 0, e);
	fd_dump_free(d);
	add_notes(job, process, pid);
	if (r) {
		image_writer_abort(job);
		image_writer_abort(process);
		return -1;
	}
	r = image_writer_close(process, false, e);
	return image_writer_close(job, false, r ? NULL : e) || r ? -1 : 0;
}

/* Nothing but the process's own descriptors may be open. */
static void check_closed(const struct checkpoint *c)
{
	const struct image_fd *fds;
	bool own[CONTROL] = {false};
	size_t count;

	fds = image_note_array(c->processes[0], IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		own[fds[i].fd] = true;
	for (int fd = 0; fd < CONTROL; fd++) {
		int flags = fcntl(fd, F_GETFD);

		/* Objects that are mapped stay until execve(2). */
		if (flags & FD_CLOEXEC && flags >= 0 && memo->map_start[0])
			continue;
		if ((flags >= 0) != own[fd])
			differs("%d is %sopen", fd, own[fd] ? "not " : "");
	}
}

/* What trecr-restart's child does, up to the check. */
static void restored(const struct checkpoint *c, void (*check)(void))
{
	struct err e = ERR_INIT;
	int keep[] = {20, -1};
	struct fd_restore *r;

	alarm(SECONDS);
	/* In the way of the process's own, if it has one of that number. */
	dup2(scratch_fd, 20);
	r = fd_restore_new(c, &(struct fd_restore_options){0}, memo->std, &e);
	if (!r || fd_restore_process(r, 0, keep, &e)) {
		differs("restore: %s", e.msg);
		_exit(1);
	}
	if (fcntl(keep[0], F_GETFD) < 0)
		differs("keep is closed");
	close(keep[0]);
	for (int i = 0; i < 4; i++) {
		int fd;

		if (!memo->map_start[i])
			continue;
		fd = fd_restore_object(r, memo->map_object[i], true, &e);
		if (fd < 0 || mmap((void *)memo->map_start[i], memo->map_size[i],
				      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
				      0) == MAP_FAILED)
			differs("map: %s", e.msg);
		close(fd);
	}
	check_closed(c);
	check();
	_exit(0);
}

static int restore(struct checkpoint *c, void (*check)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		restored(c, check);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
}

static char notices[2000];

static void note(const char *line)
{
	size_t n = strlen(notices);

	snprintf(notices + n, sizeof(notices) - n, "%s\n", line);
}

/* Open what save() wrote and run fd_restore_check(). */
static struct checkpoint *reopen(bool rollback, struct err *e)
{
	struct fd_restore_options options = {.rollback_files = rollback};
	struct checkpoint *c = checkpoint_open("images/ckpt-000001", e);

	notices[0] = 0;
	if (c && fd_restore_check(c, &options, note, e)) {
		checkpoint_close(c);
		return NULL;
	}
	return c;
}

static bool no_differences(const char *when, const char *name, struct err *e)
{
	bool good = ok(!memo->differs[0] && !e->msg[0], "%s: %s", name, when);

	if (!good)
		diag("%s%s", memo->differs, e->msg);
	memo->differs[0] = 0;
	return good;
}

/* The whole way of one scenario. */
__attribute__((unused)) static void cycle(
	const char *name, void (*setup)(void), void (*check)(void))
{
	struct victim v = victim_start(setup, check);
	struct err e = ERR_INIT;
	struct checkpoint *c;

	for (int i = 0; i < 3; i++)
		memo->std[i] = i;
	if (!no_differences("set up", name, &e)) {
		victim_end(&v, false);
		return;
	}
	save(v.pid, &e);
	victim_end(&v, !e.msg[0]);
	if (!no_differences("saved, and changed nothing", name, &e))
		return;
	c = reopen(false, &e);
	if (c && restore(c, check))
		err_set(&e, 0, "the restored process failed");
	no_differences("restored", name, &e);
	if (c)
		checkpoint_close(c);
}

/* Set up what cannot be saved: the reason must contain @want. */
__attribute__((unused)) static void refuses(
	const char *name, void (*setup)(void), const char *want)
{
	struct victim v = victim_start(setup, NULL);
	struct err e = ERR_INIT;
	int r;

	if (memo->differs[0]) {
		ok(true, "%s # SKIP %s", name, memo->differs);
	} else {
		r = save(v.pid, &e);
		says(r ? e.msg : "saved", want, name);
	}
	victim_end(&v, false);
}

static void cycle_begin(void)
{
	memo = mmap(
		NULL, sizeof(*memo), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	scratch_make();
	if (memo == MAP_FAILED || chdir(scratch_path))
		abort();
	alarm(10 * SECONDS);
}

#endif
