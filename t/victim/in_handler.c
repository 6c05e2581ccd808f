/* Stopped inside a signal handler, which itself was interrupted by another: the frames on
 * the stack, with all registers in them, must lead back to where the program was. */
#include <ucontext.h>

#include "victim.h"

static volatile int reached;
static volatile uint64_t sum;
static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

static void inner(int n, siginfo_t *i, void *context)
{
	volatile double x = 1.5;

	reached |= 2;
	victim_ready();
	victim_wait();
	x *= 3;
	sum += x == 4.5;
	if (spoil) /* a wrong mask comes back from the frame */
		sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGINT);
}

static void outer(int n)
{
	uint64_t m = 0;

	reached |= 1;
	raise(SIGTERM);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &m, 8);
	CHECK(m == (1ull << (SIGUSR1 - 1) | 1ull << (SIGUSR2 - 1)),
		"mask after the inner one: %llx", (long long)m);
	sum += 10;
}

int main(void)
{
	struct sigaction a = {.sa_sigaction = inner, .sa_flags = SA_SIGINFO};
	uint64_t rbx = 0x1122334455667788, xmm[2] = {0xaaaabbbbccccdddd, 0x1234567812345678};
	uint64_t after, xmm_after[2], m;

	sigaction(SIGTERM, &a, NULL);
	signal(SIGUSR2, outer);
	/* kill(getpid(), SIGUSR2) by hand, with values in registers that must come back. */
	asm volatile("movdqu %[x], %%xmm7\n mov %[b], %%rbx\n"
		     "mov %[pid], %%edi\n mov %[sig], %%esi\n mov %[nr], %%eax\n syscall\n"
		     "mov %%rbx, %[ba]\n movdqu %%xmm7, %[xa]\n"
		     : [ba] "=m"(after), [xa] "=m"(xmm_after)
		     : [x] "m"(xmm), [b] "m"(rbx), [pid] "r"(getpid()), [sig] "i"(SIGUSR2),
		     [nr] "i"(SYS_kill)
		     : "rax", "rbx", "rcx", "rdi", "rsi", "r11", "xmm7", "memory");
	CHECK(reached == 3, "handlers that ran: %d", reached);
	CHECK(sum == 11, "sum is %llu", (long long)sum);
	CHECK(after == rbx, "rbx is %llx", (long long)after);
	CHECK(!memcmp(xmm, xmm_after, 16), "xmm7");
	m = 0;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &m, 8);
	CHECK(m == 1ull << (SIGUSR1 - 1), "mask after the handlers is %llx", (long long)m);
	return victim_done();
}
