/* Every register, held across the checkpoint by loops in assembly: general, xmm, ymm or zmm
 * and mask registers, the flags. One loop spins on a flag in memory, in each of four threads
 * and in the main thread. */
#include <stddef.h>

#include "victim.h"

static volatile int go __attribute__((used));
static atomic_int spinning;
static int level; /* 0: SSE, 1: AVX, 2: AVX-512 */

struct state {
	uint64_t general[15]; /* all but rsp */
	uint64_t flags;
	uint8_t vector[32][64];
	uint64_t mask[8];
} __attribute__((aligned(64)));

static bool spoiled;

void victim_hurt(void)
{
	spoiled = true;
}

/* One text for all levels: the state is loaded from rdi's, the loop waits for go, and is
 * stored into rsi's, whose address is kept on the stack. */
#define LOAD_GENERAL                                                                           \
	"mov 0(%%rdi), %%rax\n mov 8(%%rdi), %%rbx\n mov 16(%%rdi), %%rcx\n"                   \
	"mov 24(%%rdi), %%rdx\n mov 32(%%rdi), %%rsi\n mov 48(%%rdi), %%rbp\n"                 \
	"mov 56(%%rdi), %%r8\n mov 64(%%rdi), %%r9\n mov 72(%%rdi), %%r10\n"                   \
	"mov 80(%%rdi), %%r11\n mov 88(%%rdi), %%r12\n mov 96(%%rdi), %%r13\n"                 \
	"mov 104(%%rdi), %%r14\n mov 112(%%rdi), %%r15\n mov 40(%%rdi), %%rdi\n"
#define STORE_GENERAL                                                                          \
	"mov %%rax, 0(%%rdi)\n mov %%rbx, 8(%%rdi)\n mov %%rcx, 16(%%rdi)\n"                   \
	"mov %%rdx, 24(%%rdi)\n mov %%rsi, 32(%%rdi)\n mov %%rbp, 48(%%rdi)\n"                 \
	"mov %%r8, 56(%%rdi)\n mov %%r9, 64(%%rdi)\n mov %%r10, 72(%%rdi)\n"                   \
	"mov %%r11, 80(%%rdi)\n mov %%r12, 88(%%rdi)\n mov %%r13, 96(%%rdi)\n"                 \
	"mov %%r14, 104(%%rdi)\n mov %%r15, 112(%%rdi)\n"
#define EACH16(op)                                                                             \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12)       \
		op(13) op(14) op(15)
#define EACH16_HIGH(op)                                                                        \
	op(16) op(17) op(18) op(19) op(20) op(21) op(22) op(23) op(24) op(25) op(26) op(27)    \
		op(28) op(29) op(30) op(31)
#define EACH7(op) op(1) op(2) op(3) op(4) op(5) op(6) op(7)
#define LX(n)     "movdqa 128+64*" #n "(%%rdi), %%xmm" #n "\n"
#define SX(n)     "movdqa %%xmm" #n ", 128+64*" #n "(%%rdi)\n"
#define LY(n)     "vmovdqa 128+64*" #n "(%%rdi), %%ymm" #n "\n"
#define SY(n)     "vmovdqa %%ymm" #n ", 128+64*" #n "(%%rdi)\n"
#define LZ(n)     "vmovdqa64 128+64*" #n "(%%rdi), %%zmm" #n "\n"
#define SZ(n)     "vmovdqa64 %%zmm" #n ", 128+64*" #n "(%%rdi)\n"
#define LK(n)     "kmovq 128+64*32+8*" #n "(%%rdi), %%k" #n "\n"
#define SK(n)     "kmovq %%k" #n ", 128+64*32+8*" #n "(%%rdi)\n"

/* The red zone is stepped over, as the compiler may have put something there. */
#define SPIN(name, load, store)                                                                \
	static __attribute__((noinline)) void name(const struct state *in, struct state *out)  \
	{                                                                                      \
		asm volatile("sub $256, %%rsp\n push %%rbp\n push %%rbx\n"                     \
			     "push %%rsi\n" load "push %%rax\n"                                \
			     "pushfq\n andq $~0x8d5, (%%rsp)\n orq $0x895, (%%rsp)\n"          \
			     "popfq\n pop %%rax\n" LOAD_GENERAL "1: pause\n"                   \
			     "push %%rax\n pushfq\n mov go(%%rip), %%eax\n"                    \
			     "test %%eax, %%eax\n jnz 2f\n popfq\n pop %%rax\n"                \
			     "jmp 1b\n"                                                        \
			     "2: popfq\n pop %%rax\n"                                          \
			     "push %%rdi\n pushfq\n mov 16(%%rsp), %%rdi\n"                    \
			     "pop 120(%%rdi)\n pop 40(%%rdi)\n" STORE_GENERAL store            \
			     "pop %%rsi\n pop %%rbx\n pop %%rbp\n add $256, %%rsp\n"           \
			     : "+D"(in), "+S"(out)                                             \
			     :                                                                 \
			     : "memory", "cc", "rax", "rcx", "rdx", "r8", "r9", "r10", "r11",  \
			     "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",       \
			     "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
			     "xmm12", "xmm13", "xmm14", "xmm15");                              \
	}

SPIN(spin_sse, EACH16(LX), EACH16(SX))
SPIN(spin_avx, EACH16(LY), EACH16(SY) "vzeroupper\n")
SPIN(spin_avx512, EACH16(LZ) EACH16_HIGH(LZ) EACH7(LK),
	EACH16(SZ) EACH16_HIGH(SZ) EACH7(SK) "vzeroupper\n")

_Static_assert(offsetof(struct state, vector) == 128, "the assembly relies on it");

static void *run(void *arg)
{
	size_t n = (size_t)arg, width = level == 2 ? 64 : level == 1 ? 32 : 16;
	struct state in, out;

	memset(&out, 0, sizeof(out));
	victim_fill(&in, sizeof(in), n);
	spinning++;
	(level == 2 ? spin_avx512 : level == 1 ? spin_avx : spin_sse)(&in, &out);
	if (spoiled)
		out.vector[3][5] ^= 1;
	for (int i = 0; i < 15; i++)
		CHECK(in.general[i] == out.general[i],
			"thread %zu, register %d: %llx, was %llx", n, i,
			(long long)out.general[i], (long long)in.general[i]);
	CHECK((out.flags & 0x8d5) == 0x895, "thread %zu: flags are %llx", n,
		(long long)out.flags);
	for (int i = 0; i < (level == 2 ? 32 : 16); i++)
		CHECK(!memcmp(in.vector[i], out.vector[i], width),
			"thread %zu, vector register %d", n, i);
	for (int i = 1; level == 2 && i < 8; i++)
		CHECK(in.mask[i] == out.mask[i], "thread %zu, mask register %d", n, i);
	return NULL;
}

static void *wait_for_go(void *arg)
{
	while (spinning < 5)
		usleep(1000);
	victim_ready();
	victim_wait();
	go = 1;
	return NULL;
}

int main(void)
{
	pthread_t t[5];

	level = __builtin_cpu_supports("avx512bw") ? 2 : __builtin_cpu_supports("avx") ? 1 : 0;
	for (size_t i = 0; i < 4; i++)
		t[i] = victim_thread(run, (void *)i);
	t[4] = victim_thread(wait_for_go, NULL);
	run((void *)9);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	return victim_done();
}
