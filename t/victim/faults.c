/*
 * Threads that make faults all the time, and handle them: a checkpoint finds some between the
 * fault and the handler. No fault is lost or handled twice, and the handler finds what the
 * processor had to say of it.
 */
#include <ucontext.h>

#include "victim.h"

#define EACH 6 /* threads of a kind */

enum kind { WRITES, DIVIDES, UNDEFINED, BEYOND, TRAPS, KINDS };

struct maker {
	enum kind kind;
	volatile char *page;
	int file;
	volatile int divisor;
	unsigned long made, handled;
	pthread_t thread;
};

static const struct {
	int signal, code, trap;
} wanted[KINDS] = {
	[WRITES] = {SIGSEGV, SEGV_ACCERR, 14},
	[DIVIDES] = {SIGFPE, FPE_INTDIV, 0},
	[UNDEFINED] = {SIGILL, ILL_ILLOPN, 6},
	[BEYOND] = {SIGBUS, BUS_ADRERR, 14},
	[TRAPS] = {SIGTRAP, SI_KERNEL, 3},
};

static struct maker makers[KINDS * EACH];
static __thread struct maker *mine;
static volatile bool enough;

static bool is_found(const siginfo_t *info, const greg_t *regs)
{
	const struct maker *m = mine;
	bool paged = m->kind == WRITES || m->kind == BEYOND;

	return info->si_signo == wanted[m->kind].signal &&
	       info->si_code == wanted[m->kind].code &&
	       regs[REG_TRAPNO] == wanted[m->kind].trap &&
	       (!paged || (info->si_addr == m->page && regs[REG_ERR] & 2 &&
				  regs[REG_CR2] == (greg_t)m->page));
}

static void handle(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	struct maker *m = mine;

	CHECK(is_found(info, regs),
		"kind %d: signal %d, code %d at %p (%p), trap %d error %#x at %#llx", m->kind,
		signal, info->si_code, info->si_addr, m->page, (int)regs[REG_TRAPNO],
		(int)regs[REG_ERR], (long long)regs[REG_CR2]);
	m->handled++;
	if (m->kind == WRITES)
		mprotect((void *)m->page, 4096, PROT_READ | PROT_WRITE);
	if (m->kind == BEYOND)
		MUST(!ftruncate(m->file, 4096));
	if (m->kind == DIVIDES)
		regs[REG_RCX] = 1;
	if (m->kind == UNDEFINED)
		regs[REG_RIP] += 2;
}

static void make_fault(struct maker *m)
{
	long high = 0, low = m->made;

	switch (m->kind) {
	case WRITES:
		mprotect((void *)m->page, 4096, PROT_READ);
		*m->page = m->made;
		break;
	case DIVIDES:
		__asm__ volatile("idiv %%rcx" : "+a"(low), "+d"(high) : "c"(0L));
		break;
	case UNDEFINED:
		__asm__ volatile("ud2");
		break;
	case BEYOND:
		MUST(!ftruncate(m->file, 0));
		*m->page = 1;
		break;
	default:
		__asm__ volatile("int3");
	}
	m->made++;
	CHECK(m->handled == m->made, "kind %d: %lu faults, %lu handled", m->kind, m->made,
		m->handled);
}

static void *run(void *arg)
{
	mine = arg;
	while (!enough && !victim_failures)
		make_fault(mine);
	return NULL;
}

static void start(struct maker *m, enum kind kind)
{
	m->kind = kind;
	m->file = memfd_create("fault", MFD_CLOEXEC);
	MUST(m->file >= 0);
	m->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		kind == BEYOND ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
		kind == BEYOND ? m->file : -1, 0);
	MUST(m->page != MAP_FAILED);
	m->thread = victim_thread(run, m);
}

void victim_hurt(void)
{
	makers[0].handled++;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};

	for (int i = 0; i < KINDS; i++)
		MUST(!sigaction(wanted[i].signal, &action, NULL));
	for (int i = 0; i < KINDS * EACH; i++)
		start(&makers[i], i % KINDS);
	victim_ready();
	victim_wait();
	enough = true;
	for (int i = 0; i < KINDS * EACH; i++)
		pthread_join(makers[i].thread, NULL);
	return victim_done();
}
