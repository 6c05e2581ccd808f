/* For debuggers: frames with names, arguments and variables whose values are known, in two
 * threads. */
#include "victim.h"

struct thing {
	int number;
	const char *text;
};

static struct thing global_thing = {4711, "a text in the program's file"};
static volatile int sink;

void victim_hurt(void)
{
	global_thing.number = 0;
}

static __attribute__((noinline)) void in_the_thread(int argument)
{
	static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&never);
	sink = argument;
	victim_ready();
	pthread_mutex_lock(&never);
	sink++;
}

static void *thread(void *arg)
{
	in_the_thread(99);
	return NULL;
}

static __attribute__((noinline)) void innermost(int argument, const char *word)
{
	volatile int local = argument * 2;
	char *heap = strdup("a text on the heap");

	victim_wait();
	CHECK(local == 246 && !strcmp(word, "word") && !strcmp(heap, "a text on the heap"),
		"local");
	sink += local;
}

static __attribute__((noinline)) void middle(struct thing *t)
{
	innermost(123, "word");
	CHECK(t->number == 4711, "global");
}

int main(void)
{
	victim_thread(thread, NULL);
	middle(&global_thing);
	_exit(victim_done());
}
