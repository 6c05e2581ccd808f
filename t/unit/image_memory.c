/* Memory for the metadata of images: of this process, or shared with those that it makes. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/image_memory.h"
#include "t/unit/tap.h"

/* Whether what a child writes there is seen here. */
static bool is_shared(char *memory)
{
	pid_t child;

	*memory = 'a';
	child = fork();
	if (!child) {
		*memory = 'b';
		_exit(0);
	}
	return waitpid(child, NULL, 0) == child && *memory == 'b';
}

static bool is_mapped(const void *memory)
{
	void *page = (void *)((uintptr_t)memory & ~(uintptr_t)4095);

	return !msync(page, 4096, MS_ASYNC);
}

static void test_pieces(void)
{
	char *first, *second, *large, *again;

	image_memory_share(true);
	first = image_memory_get(100);
	second = image_memory_get(5000);
	large = image_memory_get((size_t)100 << 20);
	ok(first && second && large, "there is memory");
	ok(is_shared(first) && is_shared(second) && is_shared(large), "it is shared");
	ok((uintptr_t)first % 16 == 0 && (uintptr_t)second % 16 == 0, "and aligned");
	ok(second >= first + 100 && second < first + 4096, "pieces lie one behind the other");
	memset(first, 1, 100);
	memset(second, 2, 5000);
	memset(large, 3, (size_t)100 << 20);
	ok(first[99] == 1 && second[0] == 2 && second[4999] == 2 && large[0] == 3,
		"and do not overlap");
	image_memory_free(first);
	ok(is_mapped(second), "a mapping stays as long as there is a piece of it");
	image_memory_free(second);
	ok(!is_mapped(second), "and goes with the last");
	image_memory_free(large);
	again = image_memory_get(100);
	ok(again && is_shared(again), "there is more afterwards");
	image_memory_free(again);
	image_memory_share(false);
}

int main(void)
{
	char *own = image_memory_get(100);

	ok(own && !is_shared(own), "at first it is the process's own");
	test_pieces();
	image_memory_free(own);
	own = image_memory_get(1);
	ok(own && !is_shared(own), "and at the end");
	image_memory_free(own);
	own = image_memory_get(0);
	ok(own, "there is a piece of no bytes");
	image_memory_free(own);
	image_memory_free(NULL);
	return done_testing();
}
