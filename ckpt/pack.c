/*
 * pack.c - choosing a method, and calling its library.
 */
#include "ckpt/pack.h"

#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "lib/util.h"

struct packer {
	struct pack_choice choice;
	ZSTD_CCtx *zstd;
	void *lz4;
};

int pack_choice_parse(struct pack_choice *choice, const char *text, struct err *e)
{
	struct pack_choice c = {.level = ZSTD_CLEVEL_DEFAULT};
	char *end = "";

	if (!strcmp(text, "lz4"))
		c.method = IMAGE_PACK_LZ4;
	else if (!strncmp(text, "zstd", 4) && (!text[4] || text[4] == ':'))
		c.method = IMAGE_PACK_ZSTD;
	else if (strcmp(text, "none"))
		return err_set(e, 0, "must be lz4, zstd[:LEVEL] or none");
	if (c.method == IMAGE_PACK_ZSTD && text[4]) {
		long level = strtol(text + 5, &end, 10);

		if (end == text + 5 || *end || level < 1 || level > ZSTD_maxCLevel())
			return err_set(
				e, 0, "must have a level from 1 to %d", ZSTD_maxCLevel());
		c.level = level;
	}
	*choice = c;
	return 0;
}

const char *pack_choice_text(const struct pack_choice *choice, char room[PACK_CHOICE_TEXT])
{
	if (choice->method == IMAGE_PACK_ZSTD)
		snprintf(room, PACK_CHOICE_TEXT, "zstd:%d", choice->level);
	else
		snprintf(room, PACK_CHOICE_TEXT, "%s",
			choice->method == IMAGE_PACK_LZ4 ? "lz4" : "none");
	return room;
}

struct packer *packer_new(const struct pack_choice *choice)
{
	struct packer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->choice = *choice;
	if (choice->method == IMAGE_PACK_ZSTD)
		p->zstd = ZSTD_createCCtx();
	else
		p->lz4 = malloc(LZ4_sizeofState());
	if (p->zstd || p->lz4)
		return p;
	packer_free(p);
	return NULL;
}

void packer_free(struct packer *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->zstd);
	free(p->lz4);
	free(p);
}

size_t packer_pack(struct packer *p, const void *data, size_t size, void *out, size_t room)
{
	size_t n;

	if (p->choice.method == IMAGE_PACK_LZ4)
		return LZ4_compress_fast_extState(p->lz4, data, out, size, room, 1);
	/* Zstandard's only other error is lack of memory: the blocks are stored as they are. */
	n = ZSTD_compressCCtx(p->zstd, out, room, data, size, p->choice.level);
	return ZSTD_isError(n) ? 0 : n;
}

int pack_unpack(
	enum image_pack_method method, const void *packed, size_t used, void *data, size_t size)
{
	switch (method) {
	case IMAGE_PACK_LZ4:
		return LZ4_decompress_safe(packed, data, used, size) == (int)size ? 0 : -1;
	case IMAGE_PACK_ZSTD:
		return ZSTD_decompress(data, size, packed, used) == size ? 0 : -1;
	default:
		return -1;
	}
}
