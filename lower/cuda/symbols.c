/* Fat binaries, and which of what is in one is for a device. */
#include "lower/cuda/symbols.h"

#include <elf.h>
#include <lz4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FATBIN 0xba55ed50

struct wrapper {
	uint32_t magic, version;
	const void *data;
};

struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size; /* behind the header */
};

enum { FATBIN_PTX = 1, FATBIN_ELF = 2 };

#define COMPRESSED_LZ4  0x2000
#define COMPRESSED_ZSTD 0x8000

/* Not documented; as seen in files of CUDA 10 to 13. */
struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size; /* of what follows the header, padding included */
	uint32_t compressed_size;
	uint32_t reserved;
	uint16_t minor, major; /* of the format */
	uint32_t arch;         /* 90: compute capability 9.0 */
	uint32_t name_offset, name_size;
	uint64_t flags;
	uint64_t reserved2;
	uint64_t full_size; /* 0: it is not compressed */
};
_Static_assert(sizeof(struct fatbin_entry) == 64, "");

struct search {
	const struct names_visitor *visitor;
	int major, minor;
};

static int in_program(const struct search *s, const char *data, uint64_t size)
{
	return !strncmp(data, ELFMAG, SELFMAG) ? names_in_elf(s->visitor, data, size)
					       : names_in_text(s->visitor, data);
}

/* ---- fat binaries ---- */

static int unpack_entry(const struct fatbin_entry *e, const char *from, char *to)
{
	uint64_t n = e->compressed_size ? e->compressed_size : e->size;

	if (e->flags & COMPRESSED_ZSTD)
		return ZSTD_isError(ZSTD_decompress(to, e->full_size, from, n)) ? -1 : 0;
	if (e->flags & COMPRESSED_LZ4)
		return LZ4_decompress_safe(from, to, n, e->full_size) < 0 ? -1 : 0;
	return -1;
}

static int in_entry(const struct search *s, const struct fatbin_entry *e)
{
	const char *payload = (const char *)e + e->header_size;
	char *unpacked;
	int r;

	if (!e->full_size || !(e->flags & (COMPRESSED_LZ4 | COMPRESSED_ZSTD)))
		return in_program(s, payload, e->size);
	unpacked = malloc(e->full_size + 1);
	if (!unpacked)
		return -1;
	unpacked[e->full_size] = 0;
	r = unpack_entry(e, payload, unpacked);
	if (!r)
		r = in_program(s, unpacked, e->full_size);
	free(unpacked);
	return r;
}

/* Machine code runs on devices of its major version and no older a minor one. */
static int fits_device(const struct search *s, const struct fatbin_entry *e, int kind)
{
	if (kind == FATBIN_ELF)
		return e->kind == FATBIN_ELF && (int)e->arch / 10 == s->major &&
		       (int)e->arch % 10 <= s->minor;
	return e->kind == kind;
}

/* Returns how many entries of @kind there were, or -1. */
static int in_entries(const struct search *s, const struct fatbin *f, int kind, int *result)
{
	const char *p = (const char *)f + f->header_size, *end = p + f->size;
	int count = 0;

	while (p + sizeof(struct fatbin_entry) <= end && !*result) {
		const struct fatbin_entry *e = (const void *)p;

		if (fits_device(s, e, kind)) {
			*result = in_entry(s, e);
			count++;
		}
		if (e->header_size < sizeof(*e) - 8 || e->header_size + e->size == 0)
			return -1;
		p += e->header_size + e->size;
	}
	return count;
}

static int in_fatbin(const struct search *s, const struct fatbin *f)
{
	int result = 0, count = in_entries(s, f, FATBIN_ELF, &result);

	if (!count)
		count = in_entries(s, f, FATBIN_PTX, &result);
	/* The driver has found something in there; what we cannot find it in would be lost. */
	return count < 0 || (!count && f->size) ? -1 : result;
}

int names_find(const void *image, int major, int minor, const struct names_visitor *visitor)
{
	const struct search s = {visitor, major, minor};
	const struct wrapper *w = image;
	const struct fatbin *f = w->magic == FATBIN_WRAPPER ? w->data : image;

	if (f->magic == FATBIN)
		return in_fatbin(&s, f);
	/* An ELF file's own headers have been checked by the driver: it has loaded it. */
	return in_program(&s, (const void *)f, UINT64_MAX);
}
