/* Functions of the program that the driver calls: on its own threads, on the calling one, from
 * graphs. Each sees the program's thread-local storage and may use its libc. */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t/split/setup.h"

static __thread int mine = 42;
static int calls[4];

/* Whatever thread this is, it must be one of the program's libc. */
static void look_at_thread(void)
{
	char *p = malloc(100000);
	uint64_t fs;

	__asm__ volatile("mov %%fs:0, %0" : "=r"(fs));
	CHECK(mine == 42);
	CHECK((uint64_t)pthread_self() == fs);
	CHECK(fs >> 40 != 0x48);
	memset(p, 1, 100000);
	free(p);
}

static void host(void *data)
{
	look_at_thread();
	CHECK(*(int *)data == 7);
	__atomic_add_fetch(&calls[0], 1, __ATOMIC_RELAXED);
}

static void stream_done(void *stream, int status, void *data)
{
	look_at_thread();
	CHECK(status == 0 && stream == data);
	__atomic_add_fetch(&calls[1], 1, __ATOMIC_RELAXED);
}

static size_t shared_bytes(int block)
{
	void *current = NULL;

	look_at_thread();
	/* And back down from in here. */
	OK(cuCtxGetCurrent(&current));
	CHECK(current == context);
	calls[2]++;
	return block * 100ul;
}

struct host_node {
	void (*function)(void *);
	void *data;
};

int cuGraphInstantiateWithFlags(void **, void *, uint64_t);
int cuGraphLaunch(void *, void *);

static void graph(void *stream, int *seven)
{
	struct host_node params = {host, seven}, back = {0};
	void *g, *node, *executable;
	int before = calls[0];

	OK(cuGraphCreate(&g, 0));
	OK(cuGraphAddHostNode(&node, g, NULL, 0, &params));
	CHECK(params.function == host);
	OK(cuGraphHostNodeGetParams(node, &back));
	CHECK(back.function == host && back.data == seven);
	OK(cuGraphInstantiateWithFlags(&executable, g, 0));
	for (int i = 0; i < 10; i++)
		OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(calls[0] == before + 10);
}

/* More functions than anybody writes: as interpreters make them. */
static void many(int *seven)
{
	const int count = 5000, size = 16;
	unsigned char *code = mmap(NULL, count * size, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t target = (uint64_t)host;
	int before = calls[0];

	CHECK(code != MAP_FAILED);
	for (int i = 0; i < count; i++) {
		unsigned char *p = code + i * size;

		memcpy(p, "\x48\xb8", 2); /* mov host, %rax; jmp *%rax */
		memcpy(p + 2, &target, 8);
		memcpy(p + 10, "\xff\xe0", 2);
		OK(cuLaunchHostFunc(NULL, (void (*)(void *))p, seven));
	}
	OK(cuCtxSynchronize());
	CHECK(calls[0] == before + count);
}

int main(void)
{
	int grid = 0, block = 0, seven = 7;
	void *streams[4];

	set_up();
	for (int i = 0; i < 4; i++)
		OK(cuStreamCreate(&streams[i], 0));
	for (int i = 0; i < 100; i++) {
		OK(cuLaunchHostFunc(streams[i % 4], host, &seven));
		OK(cuStreamAddCallback(streams[i % 4], stream_done, streams[i % 4], 0));
	}
	OK(cuCtxSynchronize());
	CHECK(calls[0] == 100 && calls[1] == 100);
	OK(cuOccupancyMaxPotentialBlockSize(
		&grid, &block, kernel("count"), shared_bytes, 0, 0));
	CHECK(block == 256 && calls[2] == 3);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("count"), NULL, 0, 0));
	CHECK(block == 1024);
	graph(streams[0], &seven);
	many(&seven);
	printf("done\n");
	return wrong != 0;
}
