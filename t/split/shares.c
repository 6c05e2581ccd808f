/*
 * shares: two processes that have each other's GPU memory open, each in every way there is: by
 * cuIpcGetMemHandle, by a file descriptor for memory of cuMemCreate, and out of a pool; and events.
 * Handles that were received before a checkpoint are opened after it.
 *
 *	shares			the second process is one of our own
 *	shares freed, ended	what is open is no longer there
 *	shares offers FILE	writes a handle into the file
 *	shares takes FILE	opens it
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include "shared/address_windows.h"
#include "t/split/driver_victim.h"

#define POOLS     1 /* HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
#define GRANULE   (2 * MIB)
#define SMALL     (96 * KIB)
#define LARGE     (5 * MIB)
#define CROWD     48
#define NOT_READY 600
#define INVALID   1

struct handle {
	char bytes[64];
};

int cuIpcGetMemHandle(struct handle *, CUdeviceptr);
int cuIpcOpenMemHandle_v2(CUdeviceptr *, struct handle, unsigned);
int cuIpcCloseMemHandle(CUdeviceptr);
int cuIpcGetEventHandle(struct handle *, void *);
int cuIpcOpenEventHandle(void **, struct handle);
int cuMemImportFromShareableHandle(uint64_t *, void *, int);
int cuMemPoolImportFromShareableHandle(void **, void *, int, uint64_t);
int cuMemPoolExportPointer(struct handle *, CUdeviceptr);
int cuMemPoolImportPointer(CUdeviceptr *, void *, const struct handle *);

enum { ALLOCATED, PIECES, MAPPED, POOLED, LATE, MEMORIES };
static const size_t sizes[MEMORIES] = {SMALL, LARGE, GRANULE, SMALL, SMALL};

/* What a process has, and what it has of the other. */
struct side {
	CUdeviceptr memory[MEMORIES];
	uint64_t physical;
	void *pool, *event, *orphan;
};
static struct side mine, theirs;

/* What it takes to open it. */
struct offer {
	struct handle memory[MEMORIES], event, orphan;
};
static struct offer got;

static int other = -1; /* socket */
static unsigned me;    /* 0 or 1 */

static const struct {
	int type, handle_types, location_type, location;
	uint64_t rest[2];
} physical = {1, POOLS, 1, 0, {0}};
static const struct {
	int type, handle_types, location_type, location;
	uint64_t rest[9];
} pool = {1, POOLS, 1, 0, {0}};
static const struct {
	int location_type, location, flags;
} access_here = {1, 0, 3};

void victim_hurt(void)
{
	OK(cuMemsetD8_v2(theirs.memory[PIECES] + LARGE - 8, 7, 8));
}

/* ---- making ---- */

/* Memory that consists of several pieces, which the driver made for other allocations. */
static CUdeviceptr make_pieces(void)
{
	CUdeviceptr crowd[CROWD], p;

	for (int i = 0; i < CROWD; i++)
		WORKS(cuMemAlloc_v2(&crowd[i], GRANULE));
	for (int i = CROWD - 8; i < CROWD; i++)
		WORKS(cuMemFree_v2(crowd[i]));
	WORKS(cuMemAlloc_v2(&p, LARGE));
	/* Elsewhere without trecr. */
	MUST(p - GPU_WINDOW >= GPU_WINDOW_SIZE ||
		(p >= crowd[0] && p < crowd[CROWD - 1] + GRANULE));
	for (int i = 0; i < CROWD - 8; i++)
		WORKS(cuMemFree_v2(crowd[i]));
	return p;
}

static CUdeviceptr make_mapped(void)
{
	CUdeviceptr p;

	WORKS(cuMemCreate(&mine.physical, GRANULE, &physical, 0));
	WORKS(cuMemAddressReserve(&p, GRANULE, 0, 0, 0));
	WORKS(cuMemMap(p, GRANULE, 0, mine.physical, 0));
	WORKS(cuMemSetAccess(p, GRANULE, &access_here, 1));
	return p;
}

static void make_offer(struct offer *o, int fds[2])
{
	CUdeviceptr *m = mine.memory;

	WORKS(cuMemAlloc_v2(&m[ALLOCATED], SMALL));
	m[PIECES] = make_pieces();
	m[MAPPED] = make_mapped();
	WORKS(cuMemPoolCreate(&mine.pool, &pool));
	WORKS(cuMemAllocFromPoolAsync(&m[POOLED], SMALL, mine.pool, NULL));
	WORKS(cuMemAlloc_v2(&m[LATE], SMALL));
	WORKS(cuEventCreate(&mine.event, 2 | 4));
	WORKS(cuEventCreate(&mine.orphan, 2 | 4));
	WORKS(cuStreamSynchronize(NULL));

	for (int i = 0; i < MEMORIES; i++)
		if (i != MAPPED && i != POOLED)
			WORKS(cuIpcGetMemHandle(&o->memory[i], m[i]));
	WORKS(cuMemExportToShareableHandle(&fds[0], mine.physical, 1, 0));
	WORKS(cuMemPoolExportToShareableHandle(&fds[1], mine.pool, 1, 0));
	WORKS(cuMemPoolExportPointer(&o->memory[POOLED], m[POOLED]));
	WORKS(cuIpcGetEventHandle(&o->event, mine.event));
	WORKS(cuIpcGetEventHandle(&o->orphan, mine.orphan));
}

/* ---- the other process ---- */

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

static void send_offer(struct offer *o, const int fds[2])
{
	struct iovec data = {o, sizeof(*o)};
	union control c = {.head = {CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &c,
		.msg_controllen = sizeof(c)};

	memcpy(CMSG_DATA(&c.head), fds, 2 * sizeof(int));
	MUST(sendmsg(other, &m, 0) == sizeof(*o));
}

static void receive_offer(int fds[2])
{
	struct iovec data = {&got, sizeof(got)};
	union control c;
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &c,
		.msg_controllen = sizeof(c)};

	MUST(recvmsg(other, &m, 0) == sizeof(got) && m.msg_controllen >= sizeof(c.head));
	memcpy(fds, CMSG_DATA(&c.head), 2 * sizeof(int));
}

/* Both have come here. */
static void meet(void)
{
	char byte = 0;
	ssize_t n;

	MUST(send(other, &byte, 1, 0) == 1);
	do {
		n = recv(other, &byte, 1, 0);
	} while (n < 0 && errno == EINTR);
	MUST(n == 1);
}

static void open_mapped(int fd)
{
	CUdeviceptr *p = &theirs.memory[MAPPED];

	WORKS(cuMemImportFromShareableHandle(&theirs.physical, (void *)(intptr_t)fd, 1));
	WORKS(cuMemAddressReserve(p, GRANULE, 0, 0, 0));
	WORKS(cuMemMap(*p, GRANULE, 0, theirs.physical, 0));
	WORKS(cuMemSetAccess(*p, GRANULE, &access_here, 1));
}

static void open_theirs(const int fds[2])
{
	CUdeviceptr again = 0;

	WORKS(cuIpcOpenMemHandle_v2(&theirs.memory[ALLOCATED], got.memory[ALLOCATED], 1));
	WORKS(cuIpcOpenMemHandle_v2(&theirs.memory[PIECES], got.memory[PIECES], 1));
	WORKS(cuIpcOpenMemHandle_v2(&again, got.memory[PIECES], 1));
	CHECK(again == theirs.memory[PIECES], "opened twice at %#lx and %#lx",
		(long)theirs.memory[PIECES], (long)again);
	open_mapped(fds[0]);
	WORKS(cuMemPoolImportFromShareableHandle(&theirs.pool, (void *)(intptr_t)fds[1], 1, 0));
	WORKS(cuMemPoolImportPointer(&theirs.memory[POOLED], theirs.pool, &got.memory[POOLED]));
	WORKS(cuIpcOpenEventHandle(&theirs.event, got.event));
	WORKS(cuIpcOpenEventHandle(&theirs.orphan, got.orphan));
	meet();
	WORKS(cuEventDestroy_v2(mine.orphan));
}

static void exchange(void)
{
	struct offer o;
	int fds[2], others[2];

	memset(&o, 0, sizeof(o));
	make_offer(&o, fds);
	send_offer(&o, fds);
	receive_offer(others);
	open_theirs(others);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(others[i]);
	}
}

/* ---- contents: of each memory the first half is its owner's to write ---- */

static uint64_t seed(unsigned who, int which, int round)
{
	return 100 * round + 10 * which + who;
}

static void write_half(CUdeviceptr p, size_t half, uint64_t s)
{
	char *data = malloc(half);

	MUST(data);
	victim_fill(data, half, s);
	OK(cuMemcpyHtoD_v2(p, data, half));
	free(data);
}

static void same_half(CUdeviceptr p, size_t half, uint64_t s, const char *what)
{
	char *data = malloc(half);

	MUST(data);
	OK(cuMemcpyDtoH_v2(data, p, half));
	SAME(data, half, s, what);
	free(data);
}

/* Of the other process, which has opened them: as of @round. */
static void look_at_shared(int round, int last)
{
	for (int i = 0; i <= last; i++) {
		size_t half = sizes[i] / 2;

		same_half(mine.memory[i], half, seed(me, i, round), "mine, by me");
		same_half(
			mine.memory[i] + half, half, seed(!me, i, round), "mine, by the other");
		same_half(theirs.memory[i], half, seed(!me, i, round), "the other's, by it");
		same_half(theirs.memory[i] + half, half, seed(me, i, round),
			"the other's, by me");
	}
}

static void write_all(int round, int last)
{
	meet();
	for (int i = 0; i <= last; i++) {
		size_t half = sizes[i] / 2;

		write_half(mine.memory[i], half, seed(me, i, round));
		write_half(theirs.memory[i] + half, half, seed(me, i, round));
	}
	meet();
	look_at_shared(round, last);
	meet();
}

/* ---- events ---- */

static int held_back[2];

static void hold_back(void *data)
{
	char byte;

	while (read(held_back[0], &byte, 1) < 0)
		;
}

/* One process's work is waited for by the other. */
static void see_event(bool works)
{
	if (works) {
		MUST(!pipe(held_back));
		OK(cuLaunchHostFunc(NULL, hold_back, NULL));
		OK(cuEventRecord(mine.event, NULL));
	}
	meet();
	if (!works)
		CHECK(cuEventQuery(theirs.event) == NOT_READY, "the event is over too soon");
	meet();
	if (works)
		MUST(write(held_back[1], "", 1) == 1);
	else
		OK(cuStreamWaitEvent(NULL, theirs.event, 0));
	OK(cuStreamSynchronize(NULL));
	CHECK(!cuEventQuery(works ? mine.event : theirs.event), "the event is not over");
	meet();
	if (works) {
		close(held_back[0]);
		close(held_back[1]);
	}
}

static void see_events(void)
{
	see_event(!me);
	see_event(me);
	CHECK(!cuEventQuery(theirs.orphan),
		"an event that its owner has destroyed is not over");
	OK(cuEventRecord(theirs.orphan, NULL));
	OK(cuEventSynchronize(theirs.orphan));
}

/* ---- the end ---- */

static void see_attributes(void)
{
	CUdeviceptr start = 0;
	size_t size = 0;
	bool capable = false;

	OK(cuMemGetAddressRange_v2(&start, &size, theirs.memory[ALLOCATED] + 5));
	CHECK(start == theirs.memory[ALLOCATED] && size == SMALL,
		"memory of the other is %zu bytes at %#lx", size, (long)start);
	OK(cuPointerGetAttribute(&capable, 13, mine.memory[ALLOCATED]));
	CHECK(capable, "memory that has been shared cannot be shared");
}

static void close_all(void)
{
	OK(cuIpcCloseMemHandle(theirs.memory[ALLOCATED]));
	CHECK(cuIpcCloseMemHandle(theirs.memory[ALLOCATED]) == INVALID, "closed twice");
	OK(cuIpcCloseMemHandle(theirs.memory[PIECES]));
	OK(cuMemsetD8_v2(theirs.memory[PIECES], 0, LARGE));
	OK(cuIpcCloseMemHandle(theirs.memory[PIECES]));
	OK(cuIpcCloseMemHandle(theirs.memory[LATE]));
	OK(cuMemUnmap(theirs.memory[MAPPED], GRANULE));
	OK(cuMemRelease(theirs.physical));
	OK(cuMemFreeAsync(theirs.memory[POOLED], NULL));
	OK(cuEventDestroy_v2(theirs.event));
	OK(cuEventDestroy_v2(theirs.orphan));
	meet();
	OK(cuMemFree_v2(mine.memory[ALLOCATED]));
	OK(cuMemFree_v2(mine.memory[PIECES]));
	meet();
	CHECK(cuIpcOpenMemHandle_v2(&theirs.memory[LATE], got.memory[PIECES], 1) == INVALID,
		"what has been freed is opened");
	meet();
}

static void before(void)
{
	exchange();
	write_all(1, POOLED);
	see_events();
	meet();
}

static void after(void)
{
	look_at_shared(1, POOLED);
	OK(cuIpcOpenMemHandle_v2(&theirs.memory[LATE], got.memory[LATE], 1));
	write_all(2, LATE);
	see_events();
	see_attributes();
	close_all();
}

static void set_up(void)
{
	void *context;

	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
}

static int second(const char *socket, const char *what)
{
	me = 1;
	other = atoi(socket);
	set_up();
	before();
	if (!strcmp(what, "freed"))
		WORKS(cuMemFree_v2(mine.memory[ALLOCATED]));
	meet();
	if (!strcmp(what, "ended"))
		return 0;
	meet();
	if (*what)
		return 0;
	after();
	return victim_failures ? 1 : 0;
}

static pid_t start_second(char *self, char *what)
{
	int ends[2];
	char number[16];
	pid_t pid;

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		close(ends[0]);
		snprintf(number, sizeof(number), "%d", ends[1]);
		execl("/proc/self/exe", self, "second", number, what, NULL);
		_exit(9);
	}
	close(ends[1]);
	other = ends[0];
	return pid;
}

static int offer_by_file(const char *path)
{
	struct handle h;
	char aside[256];
	int fd;

	WORKS(cuMemAlloc_v2(&mine.memory[0], SMALL));
	WORKS(cuIpcGetMemHandle(&h, mine.memory[0]));
	snprintf(aside, sizeof(aside), "%s.new", path);
	fd = open(aside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, &h, sizeof(h)) == sizeof(h) && !close(fd) &&
		!rename(aside, path));
	victim_ready();
	victim_wait();
	return victim_done();
}

static int take_by_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct handle h;

	MUST(fd >= 0 && read(fd, &h, sizeof(h)) == sizeof(h));
	WORKS(cuIpcOpenMemHandle_v2(&theirs.memory[0], h, 1));
	victim_ready();
	victim_wait();
	OK(cuMemsetD8_v2(theirs.memory[0], 1, SMALL));
	return victim_done();
}

int main(int argc, char **argv)
{
	char *what = argc > 1 ? argv[1] : "";
	int status = -1;
	pid_t pid;

	if (!strcmp(what, "second"))
		return second(argv[2], argv[3]);
	set_up();
	if (!strcmp(what, "offers"))
		return offer_by_file(argv[2]);
	if (!strcmp(what, "takes"))
		return take_by_file(argv[2]);
	pid = start_second(argv[0], what);
	before();
	meet();
	if (!strcmp(what, "ended"))
		MUST(waitpid(pid, &status, 0) == pid);
	victim_ready();
	victim_wait();
	if (!strcmp(what, "ended"))
		return victim_done();
	meet();
	if (!*what)
		after();
	while (waitpid(pid, &status, 0) < 0)
		MUST(errno == EINTR);
	CHECK(!status, "the second process ends with %#x", status);
	return victim_done();
}
