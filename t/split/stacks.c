/*
 * stacks HOW: a program whose stack is looked at while it is in the driver.
 *	inside	blocked in a call, then in a signal handler that interrupts it and calls, too
 *	back	in a function of its own that the driver has called
 *	steps	calls of every kind, to be followed instruction by instruction
 *	first	so, on a thread that has not called before
 *	guarded	so, where its first call is one that is recorded
 * Functions that are looked for have long names.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>

#include "t/split/driver_victim.h"

#define FRAME __attribute__((noipa))

static void *context, *stream, *await;
static uint64_t *flag;
static pid_t main_tid;

void victim_hurt(void)
{
	victim_failures++;
}

/* Calls of the driver from handlers may meet calls that they interrupt, as in the sim's lock.
 * So it is a call that does nothing but to call back. */
FRAME static size_t called_by_the_driver(int block)
{
	static bool said;

	if (!said) {
		said = true;
		victim_say("back");
		victim_wait();
		__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	}
	return block;
}

FRAME static void asks_the_driver(void)
{
	int grid, block;

	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, await, called_by_the_driver, 0, 0));
	atomic_signal_fence(memory_order_seq_cst);
}

FRAME static void handler_of_the_program(int signal)
{
	asks_the_driver();
	atomic_signal_fence(memory_order_seq_cst);
}

FRAME static void waits_in_the_driver(void)
{
	OK(cuStreamSynchronize(stream));
	atomic_signal_fence(memory_order_seq_cst);
}

static void *watch(void *argument)
{
	victim_until_blocked(main_tid, SYS_futex);
	victim_say("inside");
	victim_wait();
	syscall(SYS_tgkill, victim_pid, main_tid, SIGUSR2);
	return NULL;
}

static void launch(void *on)
{
	uint64_t a = (uintptr_t)flag, b = 1, c = 0;
	void *parameters[] = {&a, &b, &c};

	OK(cuLaunchKernel(await, 1, 1, 1, 32, 1, 1, 0, on, parameters, NULL));
}

static void inside(void)
{
	struct sigaction action = {.sa_handler = handler_of_the_program};
	pthread_t thread;

	launch(stream);
	sigaction(SIGUSR2, &action, NULL);
	thread = victim_thread(watch, NULL);
	waits_in_the_driver();
	pthread_join(thread, NULL);
}

static jmp_buf way_out;

static size_t jump(int block)
{
	longjmp(way_out, 1);
}

/* Leaves an entry of the side stack behind, for the next call to find. */
static void leave_by_jump(void)
{
	int grid, block;

	if (!setjmp(way_out))
		cuOccupancyMaxPotentialBlockSize(&grid, &block, await, jump, 0, 0);
}

static void make_stream(void)
{
	void *made;

	OK(cuStreamCreate(&made, 0));
	OK(cuStreamDestroy_v2(made));
}

static void call_in_every_way(void)
{
	int version, priority;

	OK(cuDriverGetVersion(&version));
	OK(cuStreamGetPriority(stream, &priority));
	make_stream();
	leave_by_jump();
	OK(cuDriverGetVersion(&version));
	leave_by_jump();
	make_stream();
}

static void call_first(void)
{
	OK(cuCtxSetCurrent(context));
}

static void call_first_guarded(void)
{
	void *same;

	OK(cuDevicePrimaryCtxRetain(&same, 0));
}

FRAME static void steps_through_the_crossing(void (*calls)(void))
{
	calls();
	atomic_signal_fence(memory_order_seq_cst);
}

static void *thread_steps(void *guarded)
{
	steps_through_the_crossing(guarded ? call_first_guarded : call_first);
	return NULL;
}

int main(int argc, char **argv)
{
	void *module = NULL;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	main_tid = victim_tid();
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemHostAlloc((void **)&flag, 4096, 0));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&await, module, "await"));
	if (!strcmp(argv[1], "inside"))
		inside();
	else if (!strcmp(argv[1], "back"))
		asks_the_driver();
	else if (!strcmp(argv[1], "steps"))
		steps_through_the_crossing(call_in_every_way);
	else
		pthread_join(
			victim_thread(thread_steps, strcmp(argv[1], "first") ? argv[1] : NULL),
			NULL);
	return victim_done();
}
