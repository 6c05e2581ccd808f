/* trecr-lower: the program the lower half runs. Started by bringup/start.c only. */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bringup/core.h"
#include "lower/runtime.h"
#include "shared/raw.h"

__thread struct crossing_head *upper_thread;

static void lower_failed(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

static void lower_failed(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(table->failure, sizeof(table->failure), format, ap);
	va_end(ap);
	raw_set_and_wake(&table->state, 2);
	for (;;)
		raw(SYS_exit, 0);
}

/* The patches are what all else rests on: see each of them work before anybody relies on it. */
static void check_memory(void)
{
	void *large = malloc(1 << 20), *small = malloc(100);

	if (!large || !in_lower_window((uintptr_t)large) || !in_lower_window((uintptr_t)small))
		lower_failed("memory of the lower half lies outside its window");
	free(large);
	free(small);
	if (sbrk(4096) != (void *)-1)
		lower_failed("the lower half moves the program break");
}

static void check_descriptors(void)
{
	int made[4] = {open("/dev/null", O_RDONLY | O_CLOEXEC), -1, -1, -1};

	made[1] = dup(made[0]);
	if (pipe(made + 2))
		lower_failed("making a pipe: %s", strerror(errno));
	for (int i = 0; i < 4; i++) {
		if (made[i] < table->fd_base)
			lower_failed("descriptor %d of the lower half is below %d", made[i],
				table->fd_base);
		close(made[i]);
	}
}

static void check_signals(void)
{
	struct sigaction before, after, ours = {.sa_handler = SIG_IGN};
	sigset_t mask;

	/* Asked of the kernel, not of the libc that the patches are in. */
	raw(SYS_rt_sigaction, SIGURG, 0, &before, 8);
	sigaction(SIGURG, &ours, NULL);
	raw(SYS_rt_sigaction, SIGURG, 0, &after, 8);
	if (memcmp(&before, &after, 8))
		lower_failed("the lower half changes the program's signal handlers");
	sigemptyset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (!sigismember(&mask, SIGTERM))
		lower_failed("threads of the lower half take signals");
}

/* The lower half's own threads write directly: they cannot enter the program's libc. */
static ssize_t print_output(void *cookie, const char *text, size_t size)
{
	long r;

	if (upper_thread)
		return table->print(text, size);
	if (is_agent && !printed_keep(text, size))
		return size;
	r = raw(SYS_write, 1, text, size);
	return raw_failed(r) ? 0 : r;
}

/* What is printed down here (by device code) goes through the program's standard output, in
 * order with what the program prints itself. */
static void print_in_upper(void)
{
	FILE *upper = fopencookie(NULL, "w", (cookie_io_functions_t){.write = print_output});

	if (!upper)
		lower_failed("no memory for standard output");
	setvbuf(upper, NULL, _IONBF, 0);
	stdout = upper;
}

static int make_parked(void)
{
	table->parked = parked_new();
	return table->parked ? 0 : -ENOMEM;
}

static void refill_spares(void)
{
	for (int i = 0; i < LOWER_SPARES; i++)
		if (!__atomic_load_n(&table->spares[i], __ATOMIC_ACQUIRE))
			__atomic_store_n(&table->spares[i], parked_new(), __ATOMIC_RELEASE);
}

static int carry_out(uint32_t request)
{
	switch (request) {
	case LOWER_PARK:
		return make_parked();
	case LOWER_LIBRARY:
		return library_load(table->library);
	case LOWER_ENVIRONMENT:
		return environment_take();
	case LOWER_CONNECTION:
		return connection_take();
	case LOWER_EXIT:
		return connection_end();
	case LOWER_ASK:
		return supervisor_ask(table->question);
	case LOWER_SHARE:
		return share_start();
	default:
		return share_fetch(
			&table->share_request, &table->share_reply, &table->share_fd);
	}
}

static void serve_upper_half(void)
{
	uint32_t request = __atomic_load_n(&table->request, __ATOMIC_ACQUIRE);

	if (request == LOWER_IDLE || request >= LOWER_DONE)
		return;
	table->result = carry_out(request);
	raw_set_and_wake(&table->request, LOWER_DONE);
}

int main(void)
{
	if (table->size != sizeof(*table))
		lower_failed("trecr-lower is of another build");
	check_memory();
	check_descriptors();
	check_signals();
	print_in_upper();
	table->libc_version = gnu_get_libc_version();
	table->upper_slot_offset = (char *)&upper_thread - (char *)raw_read_fs();
	table->call_upper = callback_post;
	if (agent_start() < 0)
		lower_failed("cannot create the thread that serves the supervisor");
	raw_set_and_wake(&table->state, 1);

	for (;;) {
		uint32_t bell = __atomic_load_n(&table->bell, __ATOMIC_ACQUIRE);

		serve_upper_half();
		refill_spares();
		raw_wait(&table->bell, bell);
	}
}
