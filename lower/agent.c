/*
 * Orders of the supervisor (struct lower_order), carried out on a thread of their own while all
 * threads of the upper half are stopped. What each does is in lower/cuda/orders.c.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lower/runtime.h"

__thread int is_agent;

static int order_failed(int why, const char *format, va_list ap)
{
	vsnprintf(table->order.failure, sizeof(table->order.failure), format, ap);
	table->order.result = why;
	return -1;
}

int agent_fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	order_failed(LOWER_FAILED, format, ap);
	va_end(ap);
	return -1;
}

int agent_fail_for(int why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	order_failed(why, format, ap);
	va_end(ap);
	return -1;
}

void agent_notice(const char *format, ...)
{
	char *text = table->order.notices;
	size_t used = strlen(text), room = sizeof(table->order.notices) - used;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text + used, room, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n + 1 >= room)
		text[used] = 0;
	else
		memcpy(text + used + n, "\n", 2);
}

int agent_check_wanted(void)
{
	const struct lower_order *o = &table->order;

	if (__atomic_load_n(&o->given_up, __ATOMIC_ACQUIRE) != o->number)
		return 0;
	return agent_fail("the request was cancelled");
}

/* 0, or -1: nobody can be told. */
static int report_done(uint32_t number)
{
	const uint64_t one = 1;

	__atomic_store_n(&table->order.done, number, __ATOMIC_RELEASE);
	return write(table->done_fd, &one, sizeof(one)) == sizeof(one) ? 0 : -1;
}

static int is_of_restart(uint32_t request)
{
	return request == LOWER_REPLAY || request == LOWER_REPLAY_REST || request == LOWER_TRY;
}

void agent_ended(int status)
{
	const struct lower_order *o = &table->order;

	if (!is_of_restart(o->request))
		return;
	agent_fail("the library gives up with exit status %d, and has said why on standard "
		   "error",
		status & 0xff);
	if (report_done(__atomic_load_n(&o->number, __ATOMIC_ACQUIRE)))
		return;
	for (;;)
		pause();
}

/* A descriptor that the program has closed ends this thread; the supervisor sees that there is
 * no answer. */
static void *serve_orders(void *argument)
{
	struct lower_order *o = &table->order;
	uint32_t number;
	uint64_t count;
	ssize_t n;

	is_agent = 1;
	for (;;) {
		orders_await(table->order_fd);
		n = read(table->order_fd, &count, sizeof(count));
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(count))
			return NULL;
		number = __atomic_load_n(&o->number, __ATOMIC_ACQUIRE);
		if (number == o->done)
			continue;
		o->failure[0] = 0;
		o->notices[0] = 0;
		o->result = LOWER_FAILED;
		if (!orders_carry_out(o))
			o->result = LOWER_OK;
		if (report_done(number))
			return NULL;
	}
}

int agent_start(void)
{
	pthread_t thread;
	int r = orders_start();

	if (r)
		return r;
	table->order_fd = eventfd(0, EFD_CLOEXEC);
	table->done_fd = eventfd(0, EFD_CLOEXEC);
	if (table->order_fd < 0 || table->done_fd < 0)
		return -errno;
	return -pthread_create(&thread, NULL, serve_orders, NULL);
}
