/*
 * cuGetExportTable: tables of functions without names, which runtime libraries fetch once and
 * keep. They are handed out at their real addresses, with the functions in them exchanged in
 * place for ones that cross, and exchange handles on the way. The first word of a table is its
 * size in bytes, but for one.
 */
#include <string.h>
#include <sys/mman.h>

#include "loader/lower/raw.h"
#include "lower/records.h"
#include "stubs/cuda/nameless.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/storage.h"

#define PAGE      4096ul
#define MAX_BYTES 8192

void *cuda_nameless_targets[NAMELESS];

static const struct table {
	unsigned char id[4]; /* the first bytes tell them apart */
	unsigned words;      /* 0: the table says */
	int untouched;       /* handed out as it is */
	int storage;         /* it is the one of what is kept with contexts */
} tables[] = {
	{.id = {0x6b, 0xd5, 0xfb, 0x6c}},
	{.id = {0xa0, 0x94, 0x79, 0x8c}},
	{.id = {0x42, 0xd8, 0x5a, 0x81}},
	{.id = {0xc6, 0x93, 0x33, 0x6e}, .words = 4, .storage = 1},
	{.id = {0x26, 0x3e, 0x88, 0x60}},
	{.id = {0x69, 0xa2, 0x8e, 0x9f}},
	{.id = {0x21, 0x31, 0x8c, 0x60}},
	{.id = {0xda, 0x91, 0x51, 0xd3}},
	{.id = {0xf8, 0xcf, 0xf9, 0x51}},
	{.id = {0x6e, 0x16, 0x3f, 0xbe}}, /* libcufft's */
	/* By this one a runtime library sees that the driver is genuine. It is: nothing here
	 * stands between the two. lower/gate.c has what that takes. */
	{.id = {0xd4, 0x08, 0x20, 0x55}, .untouched = 1},
};

static const struct table *find(const unsigned char *id)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!memcmp(tables[i].id, id, sizeof(tables[i].id)))
			return &tables[i];
	return NULL;
}

/* For export_tables_restarted(). */
static int remember(void **word, void *ours)
{
	struct cuda_patch *p = block_new(sizeof(*p));
	uint64_t mask;

	if (!p)
		return -1;
	*p = (struct cuda_patch){.word = word, .before = *word, .after = ours};
	mask = state_lock();
	p->next = CUDA_STATE->patches;
	CUDA_STATE->patches = p;
	state_unlock(mask);
	return 0;
}

static int writable(uintptr_t start, uintptr_t end)
{
	start &= ~(PAGE - 1);
	end = (end + PAGE - 1) & ~(PAGE - 1);
	return raw_failed(raw(SYS_mprotect, start, end - start, PROT_READ | PROT_WRITE)) ? -1
											 : 0;
}

/* The library lies where it lay: its tables get the functions that they had. */
STUB_HIDDEN int export_tables_restarted(struct crossing_library *library)
{
	static const char reason[] = "the driver is of another build";

	answers_changed();
	for (const struct cuda_patch *p = CUDA_STATE->patches; p; p = p->next) {
		if (*p->word != p->before ||
			writable((uintptr_t)p->word, (uintptr_t)(p->word + 1)) < 0) {
			raw_copy(RECORDS->failure, reason, sizeof(reason));
			return -1;
		}
		*p->word = p->after;
	}
	return 0;
}

/* Handles among the arguments of a function without a name (libcufft's table has such) are
 * known by what they are: addresses of records, which the program has no others of. */
static void *translated(void *function)
{
	uint64_t mask = state_lock();
	size_t i = 0;

	while (i < NAMELESS && cuda_nameless_targets[i] && cuda_nameless_targets[i] != function)
		i++;
	if (i < NAMELESS)
		cuda_nameless_targets[i] = function;
	state_unlock(mask);
	return i < NAMELESS ? cuda_nameless + i * NAMELESS_SIZE : function;
}

/* Exchanging twice changes nothing: what is ours does not lie in the driver. */
static int exchange(const struct table *t, void **words)
{
	size_t count = t->words ? t->words : (uintptr_t)words[0] / sizeof(void *);

	if (!count || count > MAX_BYTES / sizeof(void *) ||
		writable((uintptr_t)words, (uintptr_t)(words + count)) < 0)
		return -1;
	for (size_t i = t->words ? 0 : 1; i < count; i++) {
		void *ours;
		int known;

		if (!crossing_within(&cuda_library, words[i]))
			continue;
		known = t->storage && i < STORAGE_FUNCTIONS;
		ours = crossing_function(known ? words[i] : translated(words[i]));
		if (!ours)
			return -1;
		if (known)
			ours = storage_stand_in(i, ours);
		if (remember(&words[i], ours) < 0)
			return -1;
		words[i] = ours;
	}
	return 0;
}

/* The one that CUPTI asks for first. Without it all of CUPTI's functions give
 * CUPTI_ERROR_UNKNOWN; with it the driver would call CUPTI, and keep what CUPTI hands it,
 * neither of which could be restored. */
static int is_of_profilers(const unsigned char id[16])
{
	static const unsigned char profilers[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab,
		0x4e, 0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b};
	static int told;

	if (memcmp(id, profilers, sizeof(profilers)))
		return 0;
	if (!__atomic_fetch_add(&told, 1, __ATOMIC_RELAXED))
		crossing_complain("CUPTI", "profilers see nothing of the GPU in a program that "
					   "can be checkpointed "
					   "(run it without trecr-run, or with --gpu=off)");
	return 1;
}

/* A runtime library that is refused a table may report anything: say which one it was. */
static void complain(const unsigned char id[16])
{
	static const char digits[] = "0123456789abcdef";
	char what[] = "no table ................................ is known";
	char *at = strchr(what, '.');

	for (int i = 0; i < 16; i++) {
		*at++ = digits[id[i] >> 4];
		*at++ = digits[id[i] & 15];
	}
	crossing_complain("cuGetExportTable", what);
}

int body_cuGetExportTable(const void **out, const unsigned char id[16])
{
	const struct table *t;
	int r = is_of_profilers(id) ? CUDA_ERROR_NOT_FOUND : real_cuGetExportTable(out, id);

	if (r || !*out)
		return r;
	t = find(id);
	if (t && t->storage)
		raw_copy(CUDA_STATE->storage_table, id, sizeof(CUDA_STATE->storage_table));
	if (t && (t->untouched || !exchange(t, (void **)*out)))
		return 0;
	complain(id);
	*out = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
