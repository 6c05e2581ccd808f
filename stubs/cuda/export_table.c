/*
 * cuGetExportTable: tables of functions without names, which runtime libraries fetch once and
 * keep. They are handed out at their real addresses, with the functions in them exchanged in
 * place for ones that cross. The first word of a table is its size in bytes, but for one.
 */
#include <string.h>
#include <sys/mman.h>

#include "loader/lower/raw.h"
#include "stubs/cuda/cuda.h"

#define PAGE      4096ul
#define MAX_BYTES 8192

/* A destructor for context-local storage: what the program gives is called from below. */
typedef int storage_put(void *context, void *key, void *value, void *destructor);
static storage_put *real_storage_put;

static int put_with_callback(void *context, void *key, void *value, void *destructor)
{
	return real_storage_put(context, key, value, crossing_callback_pointer(destructor));
}

static const struct table {
	unsigned char id[4]; /* the first bytes tell them apart */
	unsigned words;      /* 0: the table says */
	int untouched;       /* handed out as it is */
	int storage;         /* entry 0 takes a destructor */
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

/* Exchanging twice changes nothing: what is ours does not lie in the driver. */
static int exchange(const struct table *t, void **words)
{
	size_t count = t->words ? t->words : (uintptr_t)words[0] / sizeof(void *);
	uintptr_t start = (uintptr_t)words & ~(PAGE - 1);
	uintptr_t end = ((uintptr_t)(words + count) + PAGE - 1) & ~(PAGE - 1);

	if (!count || count > MAX_BYTES / sizeof(void *) ||
		raw_failed(raw(SYS_mprotect, start, end - start, PROT_READ | PROT_WRITE)))
		return -1;
	for (size_t i = t->words ? 0 : 1; i < count; i++) {
		void *ours;

		if (!crossing_within(&cuda_library, words[i]))
			continue;
		ours = crossing_function(words[i]);
		if (!ours)
			return -1;
		if (t->storage && i == 0) {
			real_storage_put = (storage_put *)ours;
			ours = (void *)put_with_callback;
		}
		words[i] = ours;
	}
	return 0;
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
	int r = real_cuGetExportTable(out, id);

	if (r || !*out)
		return r;
	t = find(id);
	if (t && (t->untouched || !exchange(t, (void **)*out)))
		return 0;
	complain(id);
	*out = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
