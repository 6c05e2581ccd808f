/*
 * hostile WHAT: a program that has overwritten what trecr goes by, of its lower half: told at a
 * checkpoint, which then neither hangs nor believes it. Put right again it runs on.
 */
#include <dlfcn.h>

#include "shared/records.h"
#include "shared/table.h"
#include "stubs/crossing/thread.h"
#include "t/split/driver_victim.h"

#define TABLE ((struct lower_table *)LOWER_SHARED)

static CUdeviceptr memory;
static struct crossing_thread *thread;
static struct crossing_info info;
static uint64_t size;
static int kept_fd;

void victim_hurt(void)
{
	OK(cuMemFree_v2(memory));
}

/* An entry that the stack has left behind: one has to look further. */
static void leave_entry(void)
{
	char *here = __builtin_frame_address(0);

	thread->entries[0].rsp = (uintptr_t)here - 8192;
	thread->top = &thread->entries[1];
}

static void replace(int fd)
{
	int other = open("/dev/zero", O_RDWR | O_CLOEXEC);

	MUST(other >= 0);
	kept_fd = dup(fd);
	MUST(kept_fd >= 0 && dup2(other, fd) == fd);
}

/* Before it is mapped from outside: by the first such order. */
static void shrink(void)
{
	MUST(TABLE->staging_fd);
	CHECK(ftruncate(TABLE->staging_fd, 4096) < 0 && errno == EPERM,
		"the staging buffer can be shrunk");
}

/* Another file. */
static void replace_staging(uint64_t other_size, int seals)
{
	int other = memfd_create("staging", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(other >= 0 && !ftruncate(other, other_size));
	MUST(!fcntl(other, F_ADD_SEALS, seals));
	TABLE->staging_size = other_size;
	kept_fd = dup(TABLE->staging_fd);
	MUST(kept_fd >= 0 && dup2(other, TABLE->staging_fd) == TABLE->staging_fd);
	close(other);
}

static void spoil(const char *what)
{
	if (!strcmp(what, "entries")) {
		RECORDS->info.entry_size = 0;
		leave_entry();
	} else if (!strcmp(what, "depth")) {
		thread->top = (void *)((uintptr_t)thread->entries + (24ul << 40));
	} else if (!strcmp(what, "places")) {
		RECORDS->info.rsp_offset = 1ul << 40;
	} else if (!strcmp(what, "version")) {
		RECORDS->version++;
	} else if (!strcmp(what, "build")) {
		TABLE->size++;
	} else if (!strcmp(what, "done")) {
		replace(TABLE->done_fd);
	} else if (!strcmp(what, "size")) {
		TABLE->staging_size += MIB;
	} else if (!strcmp(what, "room")) {
		replace_staging(8 * GIB, F_SEAL_SHRINK);
	} else if (!strcmp(what, "seals")) {
		replace_staging(size, 0);
	}
}

static void put_right(const char *what)
{
	RECORDS->info = info;
	RECORDS->version = RECORDS_VERSION;
	thread->top = thread->entries;
	TABLE->staging_size = size;
	TABLE->size = sizeof(*TABLE);
	if (!strcmp(what, "done"))
		MUST(dup2(kept_fd, TABLE->done_fd) == TABLE->done_fd);
	if (!strcmp(what, "room") || !strcmp(what, "seals"))
		MUST(dup2(kept_fd, TABLE->staging_fd) == TABLE->staging_fd);
}

int main(int argc, char **argv)
{
	void *context = NULL;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&memory, MIB));
	thread = *(struct crossing_thread **)dlsym(RTLD_DEFAULT, "crossing_current");
	info = RECORDS->info;
	victim_ready();
	/* A checkpoint before, so that all is there that is made at the first. */
	victim_wait();
	size = TABLE->staging_size;
	shrink();
	spoil(argv[1]);
	MUST(open("spoilt", O_CREAT | O_CLOEXEC, 0600) >= 0);
	victim_wait();
	put_right(argv[1]);
	OK(cuMemsetD32_v2(memory, 1, 10));
	return victim_done();
}
