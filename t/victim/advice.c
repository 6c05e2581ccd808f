/* Each lasting madvise(2), as VmFlags in smaps shows it. */
#include "victim.h"

static const struct {
	int advice;
	const char *flag, *name;
} kinds[] = {
	{MADV_SEQUENTIAL, "sr", "SEQUENTIAL"},
	{MADV_RANDOM, "rr", "RANDOM"},
	{MADV_DONTFORK, "dc", "DONTFORK"},
	{MADV_DONTDUMP, "dd", "DONTDUMP"},
	{MADV_WIPEONFORK, "wf", "WIPEONFORK"},
	{MADV_MERGEABLE, "mg", "MERGEABLE"},
	{MADV_HUGEPAGE, "hg", "HUGEPAGE"},
	{MADV_NOHUGEPAGE, "nh", "NOHUGEPAGE"},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static char *p[KINDS + 1];

void victim_hurt(void)
{
	madvise(p[2], 64 * KIB, MADV_DOFORK);
}

int main(void)
{
	bool has[KINDS];

	for (size_t i = 0; i <= KINDS; i++) {
		/* Pages of no access between keep the mappings apart. */
		char *room = victim_map(192 * KIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);

		p[i] = room + 64 * KIB;
		MUST(!mprotect(p[i], 64 * KIB, PROT_READ | PROT_WRITE));
		victim_fill(p[i], 64 * KIB, i);
		if (i < KINDS)
			has[i] = !madvise(p[i], 64 * KIB, kinds[i].advice);
	}
	victim_ready();
	victim_wait();
	for (size_t i = 0; i <= KINDS; i++) {
		struct victim_vma v;

		SAME(p[i], 64 * KIB, i, "contents");
		CHECK(victim_vma(p[i], &v), "no mapping");
		for (size_t j = 0; j < KINDS; j++) {
			char word[8];
			bool want = i == j && has[j];

			snprintf(word, sizeof(word), " %s ", kinds[j].flag);
			if (has[j])
				CHECK(!!strstr(v.flags, word) == want,
					"mapping %zu, MADV_%s %s:%s", i, kinds[j].name,
					want ? "is lost" : "has come", v.flags);
		}
	}
	return victim_done();
}
