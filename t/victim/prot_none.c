/* Contents underneath PROT_NONE are there again when the protection is lifted. */
#include "victim.h"

static char *p;

void victim_hurt(void)
{
	madvise(p, 4096, MADV_DONTNEED);
}

int main(void)
{
	struct victim_vma v;
	char *w;

	p = victim_anon(256 * KIB);
	victim_fill(p, 256 * KIB, 1);
	MUST(!mprotect(p, 256 * KIB, PROT_NONE));
	w = victim_anon(64 * KIB);
	victim_fill(w, 64 * KIB, 2);
	MUST(!mprotect(w, 64 * KIB, PROT_WRITE));
	victim_ready();
	victim_wait();
	CHECK(victim_vma(p, &v) && !strcmp(v.prot, "---p"), "protection is %s", v.prot);
	CHECK(victim_vma(w, &v) && !strcmp(v.prot, "-w-p"), "protection is %s", v.prot);
	CHECK(!mprotect(p, 256 * KIB, PROT_READ | PROT_WRITE), "%s", strerror(errno));
	SAME(p, 256 * KIB, 1, "contents underneath PROT_NONE");
	CHECK(!mprotect(w, 64 * KIB, PROT_READ), "%s", strerror(errno));
	SAME(w, 64 * KIB, 2, "contents underneath PROT_WRITE");
	return victim_done();
}
