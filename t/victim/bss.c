/* A huge bss of which little is written, and initialised data. */
#include "victim.h"

static char bss[512 * 1024 * 1024];
static uint64_t data[4096] = {1, 2, 3};

void victim_hurt(void)
{
	bss[300 * MIB] ^= 1;
}

int main(void)
{
	victim_fill(bss + 300 * MIB, 64 * KIB, 1);
	data[4000] = 17;
	victim_ready();
	victim_wait();
	SAME(bss + 300 * MIB, 64 * KIB, 1, "written part of the bss");
	ZERO(bss + 100 * MIB, MIB, "unwritten part of the bss");
	CHECK(data[0] == 1 && data[1] == 2 && data[4000] == 17, "data");
	memset(bss + 400 * MIB, 1, MIB);
	return victim_done();
}
