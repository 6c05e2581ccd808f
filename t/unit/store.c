/* A directory of checkpoints: each is complete or absent, and what is needed stays. */
#include <errno.h>
#include <inttypes.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "ckpt/hash.h"
#include "ckpt/image_write.h"
#include "ckpt/store.h"
#include "lib/notices.h"
#include "lib/util.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

static const uint8_t job_a[16] = "job a", job_b[16] = "job b";
static char dir[128];

/* The directory that has been brought to disk last, in place of libc's. */
static struct stat synced;

int fsync(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
		synced = st;
	return syscall(SYS_fsync, fd);
}

static bool is_synced(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino == synced.st_ino && st.st_dev == synced.st_dev;
}

static const char *path_of(const char *name)
{
	static char path[2][256];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static bool exists(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static bool latest_is(const char *name)
{
	cleanup_free char *target = read_link(path_of("latest"), NULL);

	return target && !strcmp(target, name);
}

static void id_of(uint64_t sequence, uint8_t id[16])
{
	memset(id, 0, 16);
	memcpy(id, &sequence, sizeof(sequence));
}

/* Entry 0 of the chain, and the checkpoint @needs if not 0. */
static void add_chain(struct image_writer *w, uint64_t sequence, uint64_t needs)
{
	uint64_t links[2] = {sequence, needs};

	for (int i = 0; i < (needs ? 2 : 1); i++) {
		struct image_chain link = {0};
		char name[32];

		snprintf(name, sizeof(name), "ckpt-%06" PRIu64, links[i]);
		link.name = image_writer_string(w, name);
		id_of(links[i], link.checkpoint_id);
		image_writer_note(w, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	}
}

static int write_job(int fd, uint64_t sequence, const uint8_t *job_id, uint64_t needs)
{
	struct image_job_process process = {.pid = 77};
	struct image_job job = {.sequence = sequence, .process_count = 1};
	struct image_writer *w;
	uint8_t id[16];

	id_of(sequence, id);
	memcpy(job.job_id, job_id, 16);
	w = image_writer_open(fd, "job", IMAGE_FILE_JOB, id, "job", NULL);
	add_chain(w, sequence, needs);
	image_writer_note(w, IMAGE_NOTE_JOB, &job, sizeof(job));
	image_writer_note(w, IMAGE_NOTE_PROCESSES, &process, sizeof(process));
	return image_writer_close(w, false, NULL);
}

static int write_process(int fd, uint64_t sequence, uint64_t needs)
{
	static uint8_t block[IMAGE_BLOCK] __attribute__((aligned(IMAGE_BLOCK))) = "content";
	struct image_process process = {.pid = 77};
	struct image_thread thread = {.tid = 77};
	uint8_t id[16], hash[16];
	struct image_writer *w;

	id_of(sequence, id);
	hash128(block, sizeof(block), hash);
	w = image_writer_open(fd, "77", IMAGE_FILE_PROCESS, id, "77", NULL);
	add_chain(w, sequence, needs);
	image_writer_note(w, IMAGE_NOTE_PROCESS, &process, sizeof(process));
	image_writer_note(w, IMAGE_NOTE_THREADS, &thread, sizeof(thread));
	if (needs)
		image_writer_reference(w, 0, 0x1000,
			&(struct block_place){.source = 1, .offset = 4096}, 1, hash);
	else if (image_writer_data(w, 0, 0x1000, block, 1, hash, NULL) < 0)
		return -1;
	return image_writer_close(w, false, NULL);
}

static uint64_t make_checkpoint(struct store *s, const uint8_t *job_id, uint64_t needs)
{
	cleanup_free char *path = NULL;
	struct err e = ERR_INIT;
	uint64_t sequence = 0;
	int fd;

	if (store_begin(s, &fd, &sequence, &e) < 0 ||
		write_job(fd, sequence, job_id, needs) < 0 ||
		write_process(fd, sequence, needs) < 0 || store_commit(s, &path, &e) < 0)
		diag("%s", e.msg);
	return path && !strcmp(strrchr(path, '/') + 1, store_name(s)) ? sequence : 0;
}

static void test_first(struct store *s)
{
	bool same = true;
	char holder[64];
	struct err e = ERR_INIT;
	struct stat st;

	ok(!stat(dir, &st) && (st.st_mode & 07777) == 0700, "the directory is ours alone");
	ok(!store_open(dir, job_b, &same, &e), "only one supervisor may write there");
	says(e.msg, "in use by a supervisor", "and the other is told so");
	ok(!same && !store_is_held_for(dir, job_b, &e), "as of another job");
	ok(!store_open(dir, job_a, &same, &e) && same && store_is_held_for(dir, job_a, &e),
		"or of the same");
	snprintf(holder, sizeof(holder), "in use by a supervisor (process %d on ", getpid());
	says(e.msg, holder, "which one it is");
	ok(make_checkpoint(s, job_a, 0) == 1 && latest_is("ckpt-000001"),
		"the first has number 1");
	ok(make_checkpoint(s, job_a, 0) == 2 && latest_is("ckpt-000002"),
		"the second has number 2");
	ok(!stat(path_of("ckpt-000001"), &st) && (st.st_mode & 07777) == 0700,
		"a checkpoint is ours alone");
	ok(!stat(path_of("ckpt-000001/job"), &st) && (st.st_mode & 07777) == 0600,
		"so are its files");
}

static void test_abort(struct store *s)
{
	struct err e = ERR_INIT;
	uint64_t sequence;
	int fd;

	ok(!store_begin(s, &fd, &sequence, &e) && exists("ckpt-000003.tmp"), "one is begun");
	write_job(fd, sequence, job_a, 0);
	store_abort(s);
	ok(!exists("ckpt-000003.tmp") && latest_is("ckpt-000002"), "and thrown away");
	store_abort(s);
	mkdir(path_of("ckpt-000009.tmp"), 0700);
	ok(make_checkpoint(s, job_a, 0) == 3 && !exists("ckpt-000009.tmp"),
		"leftovers are swept away");
}

static void test_open(void)
{
	struct err e = ERR_INIT;
	struct checkpoint *c = checkpoint_open(dir, &e);

	ok(c && !strcmp(c->name, "ckpt-000003") && c->process_count == 1, "latest opens %s",
		e.msg);
	ok(c && !checkpoint_verify(c, &e), "and is right %s", e.msg);
	checkpoint_close(c);
	c = checkpoint_open(path_of("ckpt-000001"), &e);
	ok(c && c->info->sequence == 1, "so does a checkpoint by its name %s", e.msg);
	checkpoint_close(c);
	ok(!checkpoint_open(path_of("nothing"), &e), "but not what is not there");
	says(e.msg, "No such file or directory", "with the reason");
	chmod(path_of("ckpt-000001"), 0770);
	ok(!checkpoint_open(path_of("ckpt-000001"), &e), "nor what others may write to");
	says(e.msg, "others may write to it (mode 0770)", "with the reason");
	chmod(path_of("ckpt-000001"), 0700);
	ok(!checkpoint_open("/usr", &e), "nor a directory that is none");
	says(e.msg, "/usr is neither a checkpoint nor a directory of checkpoints",
		"with the reason");
}

/* 1 2 3 are full; here come 4 (full), 5 and 6, which need 4, and one of another job. */
static void test_prune(struct store *s)
{
	struct err e = ERR_INIT;
	struct checkpoint *c;

	ok(make_checkpoint(s, job_a, 0) == 4 && make_checkpoint(s, job_a, 4) == 5 &&
			make_checkpoint(s, job_b, 0) == 6 && make_checkpoint(s, job_a, 4) == 7,
		"checkpoints that need others");
	ok(store_prune(s, job_a, 2, &e) == 3, "the old ones go %s", e.msg);
	ok(!exists("ckpt-000001") && !exists("ckpt-000003") && exists("ckpt-000005") &&
			exists("ckpt-000006") && exists("ckpt-000007"),
		"the newest and the other job's stay");
	ok(exists("ckpt-000004"), "and what they need");
	ok(store_prune(s, job_a, 1, &e) == 1 && !exists("ckpt-000005"), "down to one");
	c = checkpoint_open(dir, &e);
	ok(c && !checkpoint_verify(c, &e), "which is complete %s", e.msg);
	checkpoint_close(c);
}

static void test_remove(void)
{
	struct err e = ERR_INIT;
	struct store *s;

	ok(store_remove(path_of("ckpt-000004"), &e) < 0, "what another needs is not removed");
	says(e.msg, "ckpt-000007 needs it", "and that one is named");
	ok(latest_is("ckpt-000007") && !store_remove(path_of("ckpt-000007"), &e) &&
			latest_is("ckpt-000006"),
		"latest moves when it is removed %s", e.msg);
	ok(!store_remove(path_of("latest"), &e) && latest_is("ckpt-000004"),
		"it can be named by the link %s", e.msg);
	s = store_open(dir, job_a, NULL, &e);
	ok(store_remove(path_of("ckpt-000004"), &e) < 0,
		"nothing is removed under a supervisor");
	store_close(s);
	ok(!store_remove(path_of("ckpt-000004"), &e) && !exists("ckpt-000004") &&
			!exists("latest"),
		"the last one takes the link along %s", e.msg);
	ok(store_remove(dir, &e) < 0 && exists(""), "a directory that is none stays");
}

static void test_missing_parent(void)
{
	struct err e = ERR_INIT;
	struct store *s = store_open(dir, job_a, NULL, &e);
	uint64_t n = make_checkpoint(s, job_a, 0);
	char name[64];

	ok(make_checkpoint(s, job_a, n) == n + 1, "a checkpoint and its child");
	snprintf(name, sizeof(name), "ckpt-%06" PRIu64, n);
	rename(path_of(name), path_of("elsewhere"));
	ok(!checkpoint_open(dir, &e), "the child alone does not open");
	says(e.msg, "cannot open parent checkpoint ckpt-", "with the reason");
	store_close(s);
}

/* The C library's is not linked. */
static bool no_locks;

int flock(int fd, int how)
{
	if (!no_locks)
		return syscall(SYS_flock, fd, how);
	errno = ENOLCK;
	return -1;
}

static bool says_no_locks, says_other_host;

static void hear(void *arg, const char *line)
{
	says_no_locks |= strstr(line, "file system that has no locks") != NULL;
	says_other_host |=
		strstr(line, "(process 4711 on another-host) that may still be") != NULL;
}

/* Nobody knows of the others, so nobody touches what may be theirs. */
static void test_no_locks(void)
{
	struct err e = ERR_INIT;
	struct store *a, *b;
	uint64_t sequence[2];
	int fd[2];
	char *path[2] = {NULL, NULL};

	no_locks = true;
	a = store_open(dir, job_a, NULL, &e);
	ok(a && !store_begin(a, &fd[0], &sequence[0], &e), "without locks there is a store %s",
		e.msg);
	write_job(fd[0], sequence[0], job_a, 0);
	write_process(fd[0], sequence[0], 0);
	notices_clear();
	b = store_open(dir, job_b, NULL, &e);
	ok(b && !store_begin(b, &fd[1], &sequence[1], &e), "and another %s", e.msg);
	notices_take(hear, NULL);
	ok(says_no_locks, "which names what it leaves alone");
	ok(sequence[1] == sequence[0] + 1, "they have different numbers");
	e.msg[0] = 0;
	ok(store_remove(path_of("latest"), &e) < 0, "nothing is removed meanwhile");
	says(e.msg, "cannot tell whether a supervisor is at work", "with the reason");
	write_job(fd[1], sequence[1], job_b, 0);
	write_process(fd[1], sequence[1], 0);
	ok(!store_commit(b, &path[1], &e) && !store_prune(b, job_b, 1, &e),
		"the second is complete %s", e.msg);
	ok(!store_commit(a, &path[0], &e), "and so is the first %s", e.msg);
	free(path[0]);
	free(path[1]);
	store_close(a);
	store_close(b);
	no_locks = false;
}

/* A file system that is none whose locks are known. */
static bool unknown_locks;

int fstatfs(int fd, struct statfs *fs)
{
	int r = syscall(SYS_fstatfs, fd, fs);

	if (unknown_locks)
		fs->f_type = 0x65735546; /* FUSE */
	return r;
}

/* Open and close it when @signer has been there last: whether an unfinished checkpoint is left.
 */
static bool leaves_after(const char *signer)
{
	struct err e = ERR_INIT;
	struct store *s;
	FILE *f = fopen(path_of("lock"), "w");
	bool left;

	fprintf(f, "supervisor 4711 %s 00112233445566778899aabbccddeeff %s\n", signer,
		"01234567-89ab-cdef-0123-456789abcdef");
	fclose(f);
	mkdir(path_of("ckpt-000099.tmp"), 0700);
	s = store_open(dir, job_a, NULL, &e);
	left = s && !access(path_of("ckpt-000099.tmp"), F_OK);
	store_close(s);
	return left;
}

static void test_other_host(void)
{
	struct utsname host;
	struct err e = ERR_INIT;
	struct store *s;

	uname(&host);
	ok(!leaves_after("another-host"),
		"another machine cannot be at work on a local file system");
	unknown_locks = true;
	ok(!leaves_after(host.nodename), "this machine's last boot is not at work");
	notices_clear();
	ok(leaves_after("another-host"),
		"where locks may be local another machine is left alone");
	notices_take(hear, NULL);
	ok(says_other_host, "which is told");
	s = store_open(dir, job_a, NULL, &e);
	ok(s && access(path_of("ckpt-000099.tmp"), F_OK), "until it has signed off");
	store_close(s);
	unknown_locks = false;
}

/* A file system of 1 MiB, where we may mount one. */
static void test_full_disk(void)
{
	cleanup_free void *data = aligned_alloc(IMAGE_BLOCK, 256 * IMAGE_BLOCK);
	static uint8_t hashes[256 * IMAGE_HASH_SIZE], id[16];
	struct err e = ERR_INIT;
	struct image_writer *w;
	uint64_t sequence;
	struct store *s;
	int fd, r = 0;

	mkdir(path_of("small"), 0700);
	if (mount("none", path_of("small"), "tmpfs", 0, "size=1m,mode=0700") < 0) {
		ok(true, "a full disk # SKIP cannot mount");
		return;
	}
	s = store_open(path_of("small"), job_a, NULL, &e);
	store_begin(s, &fd, &sequence, &e);
	w = image_writer_open(fd, "1", IMAGE_FILE_PROCESS, id, "1", &e);
	memset(data, 1, 256 * IMAGE_BLOCK);
	for (int i = 0; i < 2 && !r; i++)
		r = image_writer_data(w, 0, i << 20, data, 256, hashes, &e);
	ok(r < 0 && e.code == ENOSPC, "a full disk is an error");
	says(e.msg, "cannot write 1: No space left on device", "with the reason");
	image_writer_abort(w);
	store_abort(s);
	ok(make_checkpoint(s, job_a, 0) == 1, "and what was written makes room again");
	store_close(s);
	umount2(path_of("small"), MNT_DETACH);
}

int main(void)
{
	struct err e = ERR_INIT;
	struct store *s;

	scratch_make();
	snprintf(dir, sizeof(dir), "%s/store", scratch_path);
	s = store_open(dir, job_a, NULL, &e);
	if (!ok(s != NULL, "a store is created %s", e.msg))
		return done_testing();
	ok(is_synced(scratch_path), "and its name is on disk");
	test_first(s);
	test_abort(s);
	test_open();
	test_prune(s);
	store_close(s);
	test_remove();
	test_missing_parent();
	test_no_locks();
	test_other_host();
	test_full_disk();
	return done_testing();
}
