/* Private anonymous memory of every protection, with zero pages between written ones. */
#include "victim.h"

static char *rw, *ro, *rx, *holes;

void victim_hurt(void)
{
	rw[5 * MIB + 3] ^= 1;
}

int main(void)
{
	struct victim_vma v;

	rw = victim_anon(24 * MIB);
	victim_fill(rw, 24 * MIB, 1);
	ro = victim_anon(64 * KIB);
	victim_fill(ro, 64 * KIB, 2);
	MUST(!mprotect(ro, 64 * KIB, PROT_READ));
	rx = victim_anon(4 * KIB);
	memcpy(rx, "\xb8\x2a\x00\x00\x00\xc3", 6); /* mov $42, %eax; ret */
	MUST(!mprotect(rx, 4 * KIB, PROT_READ | PROT_EXEC));
	holes = victim_anon(16 * MIB);
	for (size_t i = 0; i < 16 * MIB; i += 28 * KIB)
		victim_fill(holes + (i & ~4095ul), 4096, i);
	victim_ready();
	victim_wait();
	SAME(rw, 24 * MIB, 1, "read-write memory");
	SAME(ro, 64 * KIB, 2, "read-only memory");
	CHECK(victim_vma(ro, &v) && !strcmp(v.prot, "r--p"), "protection is %s", v.prot);
	CHECK(((int (*)(void))rx)() == 42, "the code does something else");
	CHECK(victim_vma(rx, &v) && !strcmp(v.prot, "r-xp"), "protection is %s", v.prot);
	for (size_t i = 0, end = 0; i < 16 * MIB; i += 28 * KIB) {
		ZERO(holes + end, (i & ~4095ul) - end, "page between");
		SAME(holes + (i & ~4095ul), 4096, i, "page among zeros");
		end = (i & ~4095ul) + 4096;
	}
	/* It is anonymous memory in all it does, not a look-alike. */
	MUST(!madvise(rw, MIB, MADV_DONTNEED));
	ZERO(rw, MIB, "memory after MADV_DONTNEED");
	CHECK(!madvise(rw + MIB, MIB, MADV_FREE), "%s", strerror(errno));
	CHECK(!mprotect(ro, 64 * KIB, PROT_READ | PROT_WRITE), "%s", strerror(errno));
	ro[0] = 1;
	rw = mremap(rw, 24 * MIB, 48 * MIB, MREMAP_MAYMOVE);
	CHECK(rw != MAP_FAILED, "%s", strerror(errno));
	ZERO(rw + 24 * MIB, 24 * MIB, "memory that was added");
	CHECK(!munmap(rw, 48 * MIB), "%s", strerror(errno));
	return victim_done();
}
