/*
 * cuGetExportTable: tables of functions without names, which runtime libraries fetch once and
 * keep. They are handed out at their real addresses, with the functions in them exchanged in
 * place for functions that cross, and exchange handles on the way. The first word of a table is its
 * size in bytes, but for one. What has been handed out is recorded: after a restart with another
 * build of the driver it is there again, in pages of its own (lower/cuda/export_tables.c).
 *
 * A library that is refused a table may call through a null pointer without looking (cuBLASLt
 * 13 does), so a table that nobody here knows is handed out like the others. What its functions
 * leave behind in the driver is not known, though: once one of them has been called that is not
 * among the known ones, a checkpoint is refused by its name.
 */
#include <string.h>
#include <sys/mman.h>

#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/cuda/export_entry.h"
#include "stubs/cuda/modules.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/context_storage.h"

#define PAGE      4096ul
#define MAX_BYTES 8192

void *cuda_export_entry_targets[EXPORT_ENTRIES];

/* What a way leads to, and what it is called. */
static struct export_entry_function {
	void *function;
	unsigned char id[16]; /* of its table */
	unsigned slot;
	int known;
} functions[EXPORT_ENTRIES];

#define SLOT(n) (1ul << (n))

static const struct table {
	unsigned char id[4]; /* the first bytes tell them apart */
	unsigned words;      /* 0: the table says */
	int untouched;       /* handed out as it is */
	/* A bit a slot: functions that leave nothing behind; and functions that something of
	 * ours stands in front of, which @stand_in tells. */
	uint64_t known, stood_in;
	void *(*stand_in)(size_t slot, void *function);
} tables[] = {
	{.id = {0x6b, 0xd5, 0xfb, 0x6c}, .known = SLOT(2)},
	{.id = {0xa0, 0x94, 0x79, 0x8c}, .known = SLOT(2) | SLOT(6)},
	{.id = {0x42, 0xd8, 0x5a, 0x81}, .known = SLOT(2)},
	{.id = {0xc6, 0x93, 0x33, 0x6e},
		.words = 4,
		.stood_in = SLOT(STORAGE_PUT) | SLOT(STORAGE_DELETE) | SLOT(STORAGE_GET),
		.stand_in = storage_stand_in},
	{.id = {0x26, 0x3e, 0x88, 0x60}, .known = SLOT(2) | SLOT(3)},
	{.id = {0x69, 0xa2, 0x8e, 0x9f}, .known = SLOT(19) | SLOT(21) | SLOT(24) | SLOT(25)},
	{.id = {0x21, 0x31, 0x8c, 0x60}, .known = SLOT(4) | SLOT(39) | SLOT(51)},
	{.id = {0xda, 0x91, 0x51, 0xd3},
		.known = SLOT(1) | SLOT(2) | SLOT(3) | SLOT(4) | SLOT(6)},
	{.id = {0x17, 0x34, 0xdc, 0x26}, .known = SLOT(4) | SLOT(13)}, /* libcublasLt's */
	{.id = {0xf8, 0xcf, 0xf9, 0x51}, .known = SLOT(1)},
	/* libcusparseLt's: whether a device of capability 9.0 has something, by (device, 7, NULL). */
	{.id = {0xcd, 0x3e, 0xa2, 0xc6}, .known = SLOT(1)},
	{.id = {0x6e, 0x16, 0x3f, 0xbe}, /* libcufft's */
		.stood_in = SLOT(MODULE_FUNCTIONS),
		.stand_in = modules_stand_in},
	/* By this one a runtime library sees that the driver is genuine. It is: nothing here
	 * stands between the two. lower/uncrossed_calls.c has what that takes. */
	{.id = {0xd4, 0x08, 0x20, 0x55}, .untouched = 1},
};

static const struct table *find_table(const unsigned char *id)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (!memcmp(tables[i].id, id, sizeof(tables[i].id)))
			return &tables[i];
	return NULL;
}

/* The words of ours that lead to the driver's @function, by what takes its place, @ours. */
static void find_leads(void **leads[2], const void *function, void *ours)
{
	size_t i = 0;

	while (i < EXPORT_ENTRIES && functions[i].function && functions[i].function != function)
		i++;
	leads[0] = crossing_function_word(ours);
	leads[1] = NULL;
	if (*leads[0] == function)
		return;
	leads[0] = &functions[i].function;
	leads[1] = &cuda_export_entry_targets[i];
}

/* For a restart. @crossing: what the program calls, of crossing_function(); NULL: the function
 * itself. */
static int remember_word(void **word, void *ours, void *crossing)
{
	struct cuda_patch *p = block_new(sizeof(*p));
	uint64_t mask;

	if (!p)
		return -1;
	*p = (struct cuda_patch){.word = word, .before = *word, .after = ours};
	if (crossing)
		find_leads(p->leads, *word, crossing);
	mask = state_lock();
	p->next = CUDA_STATE->patches;
	CUDA_STATE->patches = p;
	state_unlock(mask);
	return 0;
}

static int make_writable(uintptr_t start, uintptr_t end)
{
	start &= ~(PAGE - 1);
	end = (end + PAGE - 1) & ~(PAGE - 1);
	return raw_failed(raw(SYS_mprotect, start, end - start, PROT_READ | PROT_WRITE)) ? -1
											 : 0;
}

static int is_moved(void *const *word)
{
	const struct cuda_table *t = CUDA_STATE->tables;

	while (t && !(word >= t->words && word < t->words + t->count))
		t = t->next;
	return t && t->moved;
}

/* The library lies where it lay: its tables get the functions that they had. */
STUB_HIDDEN int export_tables_restarted(struct crossing_library *library)
{
	static const char reason[] = "the driver is of another build";

	query_cache_invalidate();
	if (RECORDS->another_driver)
		return 0; /* lower/cuda/export_tables.c does the rest */
	for (const struct cuda_patch *p = CUDA_STATE->patches; p; p = p->next) {
		if (p->before == p->after || is_moved(p->word))
			continue;
		if (*p->word != p->before ||
			make_writable((uintptr_t)p->word, (uintptr_t)(p->word + 1)) < 0) {
			raw_copy(RECORDS->failure, reason, sizeof(reason));
			return -1;
		}
		*p->word = p->after;
	}
	return 0;
}

/* Of a slot that has been called. In the lower half, on its thread-local storage. */
static void record_unknown(const struct export_entry_function *f)
{
	struct cuda_unknown *u = block_new(sizeof(*u));
	uint64_t mask;

	if (!u) {
		CUDA_STATE->unknown_lost = 1;
		return;
	}
	raw_copy(u->id, f->id, sizeof(u->id));
	u->slot = f->slot;
	mask = state_lock();
	u->next = CUDA_STATE->unknown;
	CUDA_STATE->unknown = u;
	state_unlock(mask);
}

void export_entry_used(void **target)
{
	struct export_entry_function *f = &functions[target - cuda_export_entry_targets];

	if (__atomic_exchange_n(target, f->function, __ATOMIC_RELAXED) == f->function)
		return; /* another thread was first */
	if (coverage_export_entry)
		coverage_export_entry(f->id, f->slot);
	if (!f->known && state_usable())
		record_unknown(f);
}

/* Handles among the arguments of a function without a name (libcufft's table has such) are
 * known by what they are: addresses of records, which the program has no others of. One
 * function may stand in several slots: it is known if it is in one of them. */
static void *translating_entry(
	void *function, const unsigned char id[16], unsigned slot, int known)
{
	uint64_t mask = state_lock();
	size_t i = 0;

	while (i < EXPORT_ENTRIES && functions[i].function && functions[i].function != function)
		i++;
	if (i < EXPORT_ENTRIES && functions[i].function) {
		functions[i].known |= known;
	} else if (i < EXPORT_ENTRIES) {
		functions[i] =
			(struct export_entry_function){function, .slot = slot, .known = known};
		raw_copy(functions[i].id, id, sizeof(functions[i].id));
		cuda_export_entry_targets[i] = export_entry_first;
	}
	state_unlock(mask);
	return i < EXPORT_ENTRIES ? cuda_export_entry + i * EXPORT_ENTRY_SIZE : function;
}

static int has_slot(uint64_t slots, size_t slot)
{
	return slot < 64 && slots >> slot & 1;
}

/* What crosses to @function; NULL: no memory. */
static void *crossing_for(
	const struct table *t, void *function, const unsigned char id[16], size_t slot)
{
	if (has_slot(t->stood_in, slot))
		return crossing_function(function);
	return crossing_function(
		translating_entry(function, id, slot, has_slot(t->known, slot)));
}

static size_t words_of(const struct table *t, void *const *words)
{
	size_t count = t->words ? t->words : (uintptr_t)words[0] / sizeof(void *);

	return count > MAX_BYTES / sizeof(void *) ||
			       (!t->words && (uintptr_t)words[0] % sizeof(void *))
		       ? 0
		       : count;
}

static struct cuda_table *find_handed_out(void *const *words)
{
	struct cuda_table *t = CUDA_STATE->tables;

	while (t && t->words != words)
		t = t->next;
	return t;
}

static struct cuda_table *copy_table(void **words, size_t count, const unsigned char id[16])
{
	struct cuda_table *t = block_new(sizeof(*t) + count * sizeof(*words));

	if (!t)
		return NULL;
	raw_copy(t->id, id, sizeof(t->id));
	t->words = words;
	t->count = count;
	raw_copy(t->driver, words, count * sizeof(*words));
	return t;
}

static void remember_table(struct cuda_table *t)
{
	uint64_t mask = state_lock();

	t->next = CUDA_STATE->tables;
	CUDA_STATE->tables = t;
	state_unlock(mask);
}

static int exchange_slot(
	const struct table *t, void **word, const unsigned char id[16], size_t slot)
{
	void *crossing = t->untouched ? NULL : crossing_for(t, *word, id, slot);
	void *ours = crossing && has_slot(t->stood_in, slot) ? t->stand_in(slot, crossing)
							     : crossing;

	if (t->untouched)
		return remember_word(word, *word, NULL);
	if (!ours || remember_word(word, ours, crossing) < 0)
		return -1;
	*word = ours;
	return 0;
}

static int exchange_within(
	const struct table *t, void **words, size_t count, const unsigned char id[16])
{
	if (!t->untouched && make_writable((uintptr_t)words, (uintptr_t)(words + count)) < 0)
		return -1;
	for (size_t i = t->words ? 0 : 1; i < count; i++)
		if (crossing_within(&cuda_library, words[i]) &&
			exchange_slot(t, &words[i], id, i) < 0)
			return -1;
	return 0;
}

static int exchange_slots(const struct table *t, void **words, const unsigned char id[16])
{
	size_t count = words_of(t, words);
	struct cuda_table *copy;

	if (find_handed_out(words))
		return 0;
	copy = count ? copy_table(words, count, id) : NULL;
	if (!copy || exchange_within(t, words, count, id) < 0) {
		block_free(copy, sizeof(*copy) + count * sizeof(*words));
		return -1;
	}
	remember_table(copy);
	return 0;
}

/* Where another build of the driver does not lie in the way of tables that the program has. It takes no
 * more than half of a library's place. */
STUB_HIDDEN uintptr_t export_tables_avoid(const struct crossing_library *library)
{
	const uintptr_t places[] = {library->lower.start, LOWER_LIBRARY_SPARE,
		LOWER_LIBRARY_SPARE + LOWER_LIBRARY_SIZE / 2, LOWER_LIBRARIES,
		LOWER_LIBRARIES + LOWER_LIBRARY_SIZE / 2};

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const struct cuda_table *t = CUDA_STATE->tables;

		while (t && (uintptr_t)t->words - places[i] >= LOWER_LIBRARY_SIZE / 2)
			t = t->next;
		if (!t)
			return places[i];
	}
	return 0;
}

/* The table that CUPTI asks for first. Without it all of CUPTI's functions give
 * CUPTI_ERROR_UNKNOWN, of which PyTorch warns; with it the driver would call CUPTI, and keep what
 * CUPTI hands it, neither of which could be restored (and torch.profiler waits for ever). */
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

/* It does not begin with its size. A library that is refused a table may report anything, or
 * crash: say which one it was. */
static void report_table(const unsigned char id[16])
{
	static const char digits[] = "0123456789abcdef";
	char what[] = "table ................................ is of an unknown form";
	char *at = strchr(what, '.');

	for (int i = 0; i < 16; i++) {
		*at++ = digits[id[i] >> 4];
		*at++ = digits[id[i] & 15];
	}
	crossing_complain("cuGetExportTable", what);
}

int body_cuGetExportTable(const void **out, const unsigned char id[16])
{
	static const struct table unknown;
	const struct table *t;
	int r = is_of_profilers(id) ? CUDA_ERROR_NOT_FOUND : real_cuGetExportTable(out, id);

	if (r || !*out)
		return r;
	t = find_table(id);
	if (!t)
		t = &unknown;
	if (t->stand_in == storage_stand_in)
		raw_copy(CUDA_STATE->storage_table, id, sizeof(CUDA_STATE->storage_table));
	if (!exchange_slots(t, (void **)*out, id))
		return 0;
	report_table(id);
	*out = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
