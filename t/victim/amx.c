/*
 * The tiles of AMX, which a process has to ask for: their shapes, their contents, and leave to
 * use them in threads made later. Alone among the vector state, it is 8 KiB a thread.
 */
#include <asm/prctl.h>
#include <cpuid.h>

#include "victim.h"

#ifndef ARCH_GET_XCOMP_PERM
#define ARCH_GET_XCOMP_PERM 0x1022
#define ARCH_REQ_XCOMP_PERM 0x1023
#endif
#define XTILE_DATA 18
#define TILES      8
#define ROWS       16
#define ROW        64
#define TILE       (ROWS * ROW)

struct shapes {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
} __attribute__((aligned(64)));

static bool spoiled;

void victim_hurt(void)
{
	spoiled = true;
}

#define EACH(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)
#define LOAD(n)  "tileloadd (%0,%1), %%tmm" #n "\n add %2, %0\n"
#define STORE(n) "tilestored %%tmm" #n ", (%0,%1)\n add %2, %0\n"

static void load(const char *from)
{
	asm volatile(EACH(LOAD) : "+r"(from) : "r"((long)ROW), "r"((long)TILE) : "memory");
}

static void store(char *to)
{
	asm volatile(EACH(STORE) : "+r"(to) : "r"((long)ROW), "r"((long)TILE) : "memory");
}

static void set_shapes(void)
{
	struct shapes s = {.palette = 1};

	for (int i = 0; i < TILES; i++) {
		s.row_bytes[i] = ROW;
		s.rows[i] = ROWS;
	}
	asm volatile("ldtilecfg %0" : : "m"(s));
}

static bool has_amx(void)
{
	unsigned a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1u << 24;
}

static void *in_a_new_thread(void *arg)
{
	static char in[TILES * TILE], out[TILES * TILE];

	victim_fill(in, sizeof(in), 2);
	set_shapes();
	load(in);
	store(out);
	SAME(out, sizeof(out), 2, "tiles of a new thread");
	return NULL;
}

int main(void)
{
	static char in[TILES * TILE], out[TILES * TILE];
	struct shapes shapes;
	uint64_t allowed = 0;
	pthread_t t;

	if (!has_amx())
		victim_skip("this processor has no AMX");
	if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILE_DATA))
		victim_skip("this kernel does not let processes have AMX");
	victim_fill(in, sizeof(in), 1);
	set_shapes();
	load(in);
	victim_ready();
	victim_wait();
	asm volatile("sttilecfg %0" : "=m"(shapes));
	store(out);
	if (spoiled)
		out[5] ^= 1;
	CHECK(shapes.palette == 1 && shapes.rows[7] == ROWS && shapes.row_bytes[7] == ROW,
		"the shapes of tiles");
	SAME(out, sizeof(out), 1, "tiles");
	CHECK(!syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &allowed) &&
			allowed >> XTILE_DATA & 1,
		"leave to use them: %llx", (long long)allowed);
	t = victim_thread(in_a_new_thread, NULL);
	pthread_join(t, NULL);
	return victim_done();
}
