/*
 * A signal at every instruction of the crossing. The program steps through its own calls: with the trap flag set, each
 * instruction ends in a SIGTRAP, and the handler of that (which the crossing does not know of) sends SIGUSR1 at a given
 * instruction of the crossing, and again a given number of these later, be it in the handler of the first or after it:
 * all pairs of instructions. The handler of SIGUSR1 calls the driver, near to where it was interrupted and far below, on
 * the thread's stack or on one of its own; it returns, jumps out, or forks. On the main thread and on others, and in a
 * thread's first call.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "shared/raw.h"
#include "stubs/crossing/thread.h"
#include "t/split/setup.h"

#define TRAP_FLAG 0x100

/* ---- stepping ---- */

static struct {
	uintptr_t low, high; /* the crossing's own code; natively there is none */
	int first,
		second; /* at which of its instructions, the second counted from the first; 0: none */
	int together; /* two signals at once: one handler is interrupted at its first instruction */
	uintptr_t into; /* what returns to there is stepped through, too */
	int active;
	int was_inside;
	int count, sent;
} plan;

void start_stepping(void);
extern char resume_stepping[];
uintptr_t stepping_resumes_at;

__asm__(".text\n"
	"start_stepping:\n"
	"	pushfq\n"
	"	orq $0x100, (%rsp)\n"
	"	popfq\n"
	"	ret\n"
	"resume_stepping:\n"
	"	push stepping_resumes_at(%rip)\n"
	"	jmp start_stepping\n");

static int inside(uintptr_t address)
{
	return address >= plan.low && address < plan.high;
}

/* Whether the instruction that the thread has come to is where to send. */
static int is_time(void)
{
	return ++plan.count == (plan.sent ? plan.second : plan.first);
}

/* On whatever FS base, so it may use nothing of the libc. */
static __attribute__((optimize("no-stack-protector"))) void trapped(
	int signal, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t *sp = (uintptr_t *)r[REG_RSP];
	int more = plan.active, was_inside = plan.was_inside;

	plan.was_inside = inside(r[REG_RIP]);
	if (more && plan.was_inside && is_time()) {
		plan.sent++;
		plan.count = 0;
		raw(SYS_tgkill, raw(SYS_getpid), raw(SYS_gettid), SIGUSR1);
		if (plan.together)
			raw(SYS_tgkill, raw(SYS_getpid), raw(SYS_gettid), SIGUSR2);
		more = plan.second && plan.sent == 1;
	} else if (more && was_inside && !plan.was_inside && inside(*sp) && *sp != plan.into) {
		/* Called by the crossing: left out, as it may block signals. */
		stepping_resumes_at = *sp;
		*sp = (uintptr_t)resume_stepping;
		more = 0;
	}
	if (!more)
		r[REG_EFL] &= ~TRAP_FLAG;
}

/* ---- what is interrupted, and what interrupts ---- */

#define HANDLER_STACK (1 << 20)

static int version;

/* What the handler does besides calling the driver. */
enum act { RETURNS, FORKS, FORKS_AND_RETURNS, LEAVES, LEAVES_AT_SECOND };

static sigjmp_buf out;
static volatile int act, nested, in_child;
static volatile int may_go_on; /* in a child: calls that were under way when it was forked */

/* A call that does next to nothing. */
static void ask(void)
{
	int got = 0, result = cuDriverGetVersion(&got);

	CHECK(in_child ? result == 3 || may_go_on : !result && got == version);
}

/* The same from far below. */
static void __attribute__((noinline)) ask_below(void)
{
	volatile char *room = alloca(40000);

	room[0] = 1;
	ask();
	CHECK(room[0] == 1);
}

static void fork_child(void)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		alarm(20);
		plan.active = 0;
		in_child = 1;
		wrong = 0;
		may_go_on = act == FORKS_AND_RETURNS;
		if (may_go_on)
			return;
		ask();
		_exit(wrong);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	CHECK(status == 0);
}

static void handler(int signal)
{
	int level = ++nested, before = errno;

	if (plan.active && plan.second && level == 1)
		start_stepping();
	ask();
	ask_below();
	if ((act == FORKS || act == FORKS_AND_RETURNS) && level == 1 && !in_child)
		fork_child();
	if (act == LEAVES || (act == LEAVES_AT_SECOND && level == 2))
		siglongjmp(out, 1);
	errno = before;
	nested--;
}

/* Past the crossing, which would lead handlers to the upper FS base. */
static void catch_traps(void)
{
	struct {
		void *handler;
		uint64_t flags;
		void *restorer;
		uint64_t mask;
	} action;

	signal(SIGTRAP, handler); /* for what the libc puts beside it */
	CHECK(!raw(SYS_rt_sigaction, SIGTRAP, NULL, &action, 8));
	action.handler = (void *)trapped;
	action.flags = (action.flags & ~(uint64_t)SA_RESTART) | SA_SIGINFO;
	action.mask = ~(uint64_t)0;
	CHECK(!raw(SYS_rt_sigaction, SIGTRAP, &action, NULL, 8));
}

/* Kinds of calls: one that crosses, one that is entered through crossing_guard(), one that calls back. */
static void cross(void)
{
	ask();
}

static void guard(void)
{
	uint64_t base, size;

	CHECK(cuMemGetAddressRange_v2(&base, &size, 16) != 0);
}

static size_t called_back(int block)
{
	ask();
	return 0;
}

static void *function;

static void call_back(void)
{
	int grid, block,
		result = cuOccupancyMaxPotentialBlockSize(
			&grid, &block, function, called_back, 0, 0);

	CHECK(result == 0 || in_child);
}

static void (*const kinds[])(void) = {cross, guard, call_back};

/* One call with signals as planned: how many were sent. Then no call is under way, says the crossing. (The call that
 * has it look is made here: after a jump, calls that were left are known by being further down the stack.) */
static int once(int kind, int first, int second, int prepare)
{
	struct crossing_thread **current = dlsym(RTLD_DEFAULT, "crossing_current");
	int now;

	plan.first = first;
	plan.second = second;
	plan.into = kind == 2 ? (uintptr_t)dlsym(RTLD_DEFAULT, "crossing_returned") : 0;
	plan.sent = plan.count = plan.was_inside = 0;
	/* What an entry of the side stack had before. */
	if (prepare)
		ask_below();
	if (!sigsetjmp(out, 1)) {
		plan.active = plan.low != 0;
		if (plan.active)
			start_stepping();
		kinds[kind]();
	}
	plan.active = 0;
	nested = 0;
	if (in_child) {
		may_go_on = 0;
		ask();
		_exit(wrong);
	}
	OK(cuDriverGetVersion(&now));
	CHECK(!current || (*current && (*current)->top == (*current)->base));
	return plan.sent;
}

static int all_firsts(int kind, int prepare)
{
	int first = 1;

	while (once(kind, first, 0, prepare))
		first++;
	return first;
}

static void all_pairs(int kind, int prepare)
{
	for (int first = 1, n = 1; n; first++)
		for (int second = 1; (n = once(kind, first, second, prepare)) == 2; second++)
			;
}

static int pairs;

/* With the handlers' stack at @stack; NULL: the thread's. */
static void *walk(void *stack)
{
	stack_t alternate = {
		.ss_sp = stack, .ss_size = HANDLER_STACK, .ss_flags = stack ? 0 : SS_DISABLE};

	OK(sigaltstack(&alternate, NULL));
	for (int kind = 0; kind < 2; kind++)
		for (act = RETURNS; act <= LEAVES; act++)
			for (int prepare = 0; prepare < 2; prepare++)
				CHECK(all_firsts(kind, prepare) > 20 || !is_split());
	for (act = RETURNS; act <= LEAVES; act += LEAVES)
		CHECK(all_firsts(2, 1) > 40 || !is_split());
	plan.together = 1;
	for (act = RETURNS; act <= LEAVES_AT_SECOND; act += LEAVES)
		all_firsts(0, 1);
	plan.together = 0;
	for (act = RETURNS; act <= LEAVES_AT_SECOND && pairs; act += LEAVES_AT_SECOND)
		all_pairs(0, 1);
	return NULL;
}

static int sent_in_first_call, second_in_first_call;

static void *first_call(void *first)
{
	sent_in_first_call = once(0, (intptr_t)first, second_in_first_call, 0);
	return NULL;
}

static void in_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, argument));
	pthread_join(thread, NULL);
}

static void first_calls(void)
{
	for (act = RETURNS; act <= LEAVES; act++)
		for (second_in_first_call = 0; second_in_first_call < 3; second_in_first_call++)
			for (intptr_t first = 1; first == 1 || sent_in_first_call; first++)
				in_thread(first_call, (void *)first);
}

int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER | SA_ONSTACK};
	void *stack = malloc(HANDLER_STACK);

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	set_up();
	OK(cuDriverGetVersion(&version));
	function = kernel("count");
	catch_traps();
	plan.low = (uintptr_t)dlsym(RTLD_DEFAULT, "crossing");
	plan.high = (uintptr_t)dlsym(RTLD_DEFAULT, "crossing_callback") + 4096;
	CHECK(!is_split() || plan.low);

	for (int i = 0; i < 2; i++) {
		pairs = !i;
		walk(i ? stack : NULL);
		pairs = i;
		in_thread(walk, i ? stack : NULL);
	}
	first_calls();
	free(stack);
	printf("done\n");
	return wrong != 0;
}
