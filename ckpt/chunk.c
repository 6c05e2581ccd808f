/* chunk.c - the filters in the order in which a chunk goes through them. */
#include "ckpt/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/hash.h"
#include "ckpt/common_blocks.h"
#include "lib/util.h"

/* What compression has to save: less is not worth the work of decompressing. */
static size_t worthwhile_size(size_t size)
{
	return size - size / 8;
}

void chunk_begin(
	struct chunk *c, const struct block_run *run, uint64_t address, uint32_t blocks)
{
	c->run = run;
	c->scattered = false;
	memset(&c->wanted, 0xff, sizeof(c->wanted));
	memset(&c->keep_zero, run->keep_zero ? 0xff : 0, sizeof(c->keep_zero));
	c->address[0] = address;
	c->blocks = blocks;
}

uint64_t chunk_address(const struct chunk *c, uint32_t i)
{
	return c->scattered ? c->address[i] : c->address[0] + (uint64_t)i * IMAGE_BLOCK;
}

bool chunk_may_add(const struct chunk *c, const struct block_run *run)
{
	const struct block_run *first = c->run;

	return run->read == first->read && run->context == first->context &&
	       run->object == first->object && !run->hash && !first->hash && !run->file &&
	       !first->file;
}

/* From here on each block has an address of its own. */
static void scatter(struct chunk *c)
{
	for (uint32_t i = 1; !c->scattered && i < c->blocks; i++)
		c->address[i] = chunk_address(c, i);
	c->scattered = true;
}

static void set_keep_zero(struct chunk *c, uint32_t i, bool keep_zero)
{
	uint64_t bit = 1ull << i % 64;

	if (keep_zero)
		c->keep_zero.bits[i / 64] |= bit;
	else
		c->keep_zero.bits[i / 64] &= ~bit;
}

void chunk_add(struct chunk *c, const struct block_run *run, uint64_t address, uint32_t blocks)
{
	scatter(c);
	for (uint32_t end = c->blocks + blocks; c->blocks < end; address += IMAGE_BLOCK) {
		set_keep_zero(c, c->blocks, run->keep_zero);
		c->address[c->blocks++] = address;
	}
}

static uint8_t *block_data(const struct chunk *c, uint32_t i)
{
	return c->data + (size_t)i * IMAGE_BLOCK;
}

/* Whether block @i is behind block @i - 1 in memory, too. */
static bool follows(const struct chunk *c, uint32_t i)
{
	return !c->scattered || c->address[i] == c->address[i - 1] + IMAGE_BLOCK;
}

static int read_pieces(
	struct chunk *c, const struct block_piece *pieces, size_t count, struct err *e)
{
	const struct block_run *run = c->run;

	if (count > 1 && run->read_pieces)
		return run->read_pieces(run->context, pieces, count, e);
	for (size_t i = 0; i < count; i++)
		if (run->read(run->context, pieces[i].address, pieces[i].data, pieces[i].size,
			    e) < 0)
			return -1;
	return 0;
}

uint32_t chunk_wanted_blocks(const struct chunk *c)
{
	uint32_t count = 0, i;

	for (i = 0; i + 64 <= c->blocks; i += 64)
		count += __builtin_popcountll(c->wanted.bits[i / 64]);
	if (i < c->blocks)
		count += __builtin_popcountll(
			c->wanted.bits[i / 64] & ((1ull << (c->blocks - i)) - 1));
	return count;
}

static int filter_read(struct chunk *c, struct err *e)
{
	struct block_piece pieces[CHUNK_BLOCKS];
	size_t count = 0;
	uint32_t end;

	if (!c->scattered && chunk_wanted_blocks(c) == c->blocks)
		return c->run->read(c->run->context, c->address[0], c->data,
			(size_t)c->blocks * IMAGE_BLOCK, e);
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + 1;
		if (!chunk_has(&c->wanted, first))
			continue;
		while (end < c->blocks && chunk_has(&c->wanted, end) && follows(c, end))
			end++;
		pieces[count++] = (struct block_piece){.address = chunk_address(c, first),
			.size = (size_t)(end - first) * IMAGE_BLOCK,
			.data = block_data(c, first)};
	}
	return read_pieces(c, pieces, count, e);
}

static enum fate zero_fate(const struct chunk *c, uint32_t i)
{
	return chunk_has(&c->keep_zero, i) ? FATE_ZERO : FATE_DROP;
}

/* Zero blocks are not hashed. */
static void filter_zero_and_hash(struct chunk *c)
{
	bool all = chunk_wanted_blocks(c) == c->blocks;

	for (uint32_t i = 0; i < c->blocks; i++) {
		if (!all && !chunk_has(&c->wanted, i)) {
			c->fate[i] = FATE_OTHER;
		} else if (is_zero(block_data(c, i), IMAGE_BLOCK)) {
			c->fate[i] = zero_fate(c, i);
		} else {
			c->fate[i] = FATE_STORE;
			hash128(block_data(c, i), IMAGE_BLOCK, c->hash[i]);
		}
	}
}

/* The parent's extent that has block @i; it may be @last, the extent of the block before. */
static const struct image_extent *parent_extent(const struct chunk *c, uint32_t i,
	const struct blocks_to_write *to_write, const struct image_extent *last)
{
	uint64_t address = chunk_address(c, i);

	if (last && address >= last->address &&
		(address - last->address) / IMAGE_BLOCK < last->blocks)
		return last;
	return image_find(to_write->parent, c->run->object, address);
}

static uint32_t number_in(const struct image_extent *x, const struct chunk *c, uint32_t i)
{
	return (chunk_address(c, i) - x->address) / IMAGE_BLOCK;
}

/* How many blocks from @i on, one behind the other, the parent's extent @x has. */
static uint32_t count_in(const struct image_extent *x, const struct chunk *c, uint32_t i)
{
	uint32_t most = x->blocks - number_in(x, c, i), count = 1;

	if (most > c->blocks - i)
		most = c->blocks - i;
	if (!c->scattered)
		return most;
	while (count < most && follows(c, i + count))
		count++;
	return count;
}

/* Where the parent's extent @x has block @i. */
static struct block_place parent_place(const struct chunk *c, uint32_t i,
	const struct blocks_to_write *to_write, const struct image_extent *x)
{
	uint32_t nth = number_in(x, c, i);

	return (struct block_place){
		.source = to_write->parent_source[x->source],
		.offset = x->file_offset + (uint64_t)nth * IMAGE_BLOCK,
		.pack = image_pack_of(to_write->parent, x),
		.skip = x->skip + nth,
		.table = x->hash_table + 1,
		.first_hash = x->first_hash + nth,
	};
}

static void refer_to_parent(struct chunk *c, uint32_t i, const struct blocks_to_write *to_write,
	const struct image_extent *x)
{
	c->fate[i] = FATE_PARENT;
	c->parent[i] = parent_place(c, i, to_write, x);
}

/* The parent's extent that has all blocks of the chunk, NULL: there is none. */
static const struct image_extent *whole_extent(
	const struct chunk *c, const struct blocks_to_write *to_write)
{
	const struct image_extent *x = parent_extent(c, 0, to_write, NULL);

	return x && image_extent_is_stored(x) && count_in(x, c, 0) == c->blocks ? x : NULL;
}

/* As a reference to the parent's extent @x. */
static void refer_row(struct chunk *c, uint32_t first, uint32_t blocks,
	const struct blocks_to_write *to_write, const struct image_extent *x)
{
	c->references[c->reference_count++] = (struct chunk_reference){
		.first = first,
		.blocks = blocks,
		.place = parent_place(c, first, to_write, x),
	};
}

/* Nothing is known of its blocks yet. */
static void begin_filters(struct chunk *c)
{
	c->pack_count = 0;
	c->reference_count = 0;
	c->settled = false;
}

/* A reference to the parent, if the hashes say that it has all of the chunk in a row. */
static bool is_as_in_parent(struct chunk *c, const struct blocks_to_write *to_write)
{
	const struct image_extent *x = whole_extent(c, to_write);
	const uint8_t *hashes =
		x ? image_hashes(to_write->parent, x, number_in(x, c, 0), c->blocks, NULL)
		  : NULL;

	if (!hashes || memcmp(c->hash, hashes, c->blocks * (size_t)IMAGE_HASH_SIZE))
		return false;
	refer_row(c, 0, c->blocks, to_write, x);
	c->settled = true;
	return true;
}

/* Of @count blocks from @i on, which the parent's extent @x has, those that are the same. If their hashes cannot be
 * read, none is. */
static void filter_extent(struct chunk *c, uint32_t i, uint32_t count,
	const struct blocks_to_write *to_write, const struct image_extent *x)
{
	const uint8_t *hashes =
		image_hashes(to_write->parent, x, number_in(x, c, i), count, NULL);

	for (uint32_t end = i + count; hashes && i < end; i++, hashes += IMAGE_HASH_SIZE)
		if (c->fate[i] == FATE_STORE && !memcmp(c->hash[i], hashes, IMAGE_HASH_SIZE))
			refer_to_parent(c, i, to_write, x);
}

/* Blocks that the parent has with the same hash become references to where the parent's are:
 * in its own file or, flattened, in that of one of its ancestors. */
static void filter_parent(struct chunk *c, const struct blocks_to_write *to_write)
{
	const struct image_extent *x = NULL;
	uint32_t count;

	for (uint32_t i = 0; i < c->blocks; i += count) {
		count = 1;
		if (c->fate[i] != FATE_STORE)
			continue;
		x = parent_extent(c, i, to_write, x);
		if (!x || !image_extent_is_stored(x))
			continue;
		count = count_in(x, c, i);
		filter_extent(c, i, count, to_write, x);
	}
}

/* Blocks that are known to be as they were need not be read, nor their hashes. Those that the parent has not, as it
 * has none that are zero, stay wanted. */
static void filter_clean(struct chunk *c, const struct blocks_to_write *to_write)
{
	const struct image_extent *x = NULL;
	uint32_t count;

	c->settled = true;
	for (uint32_t i = 0; i < c->blocks; i += count) {
		count = 1;
		x = parent_extent(c, i, to_write, x);
		if (!x || !image_extent_is_stored(x)) {
			c->settled = false;
			continue;
		}
		count = count_in(x, c, i);
		refer_row(c, i, count, to_write, x);
		for (uint32_t k = i; k < i + count; k++)
			c->wanted.bits[k / 64] &= ~(1ull << k % 64);
	}
}

/* After all the filters: whether it would have been right not to read the chunk. */
static int check_clean(
	const struct chunk *c, const struct blocks_to_write *to_write, struct err *e)
{
	for (uint32_t i = 0; i < c->blocks; i++) {
		const struct image_extent *x = parent_extent(c, i, to_write, NULL);
		bool was_zero = !x || x->kind == IMAGE_EXTENT_ZERO;

		if (was_zero ? c->fate[i] != FATE_DROP && c->fate[i] != FATE_ZERO
			     : c->fate[i] != FATE_PARENT)
			return err_set(e, 0,
				"the block at %#lx was taken for unchanged, but has changed",
				(unsigned long)chunk_address(c, i));
	}
	return 0;
}

/* Compress blocks [first, end), if that makes them smaller. */
static void pack_blocks(struct chunk *c, uint32_t first, uint32_t end)
{
	size_t size = (size_t)(end - first) * IMAGE_BLOCK, used;
	struct packed_run *run = &c->packs[c->pack_count];

	used = packer_pack(c->packer, block_data(c, first), size, c->packed + c->packed_size,
		worthwhile_size(size));
	if (!used)
		return;
	*run = (struct packed_run){
		.address = chunk_address(c, first),
		.hashes = c->hash[first],
		.pack = {.file_offset = c->packed_size,
			.size = used,
			.used = used,
			.blocks = end - first,
			.method = c->method},
	};
	c->packed_size += used;
	c->pack_count++;
	for (uint32_t i = first; i < end; i++)
		c->fate[i] = FATE_PACKED;
}

/* That was in vain. */
static void undo_packs(struct chunk *c)
{
	for (uint32_t i = 0; i < c->blocks; i++)
		if (c->fate[i] == FATE_PACKED)
			c->fate[i] = FATE_STORE;
	c->pack_count = 0;
}

/* Packs lie one behind the other; the last is filled up to the end of its page with zeros. */
static void finish_packs(struct chunk *c)
{
	size_t rest = align_up(c->packed_size, IMAGE_BLOCK) - c->packed_size, blocks = 0;

	for (size_t i = 0; i < c->pack_count; i++)
		blocks += c->packs[i].pack.blocks;
	if (c->packed_size + rest >= blocks * IMAGE_BLOCK) {
		undo_packs(c);
		return;
	}
	memset(c->packed + c->packed_size, 0, rest);
	c->packed_size += rest;
	c->packs[c->pack_count - 1].pack.size += rest;
	for (size_t i = 0; i < c->pack_count; i++) {
		struct image_pack *p = &c->packs[i].pack;

		p->hash = hash64(c->packed + p->file_offset, p->size);
	}
}

/* Blocks that are left to be stored become packs, cut at multiples of their size. */
static void filter_pack(struct chunk *c)
{
	uint32_t end;

	c->packed_size = 0;
	c->pack_count = 0;
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + 1;
		if (c->fate[first] != FATE_STORE)
			continue;
		while (end < c->blocks && c->fate[end] == FATE_STORE && follows(c, end) &&
			chunk_address(c, end) / IMAGE_BLOCK % IMAGE_PACK_BLOCKS)
			end++;
		pack_blocks(c, first, end);
	}
	if (c->pack_count)
		finish_packs(c);
}

/* Whether the other file has block @i behind block @i - 1, too. */
static bool continues_reference(const struct chunk *c, uint32_t i)
{
	const struct block_place *before = &c->parent[i - 1], *this = &c->parent[i];

	if (before->source != this->source || before->pack != this->pack ||
		before->table != this->table)
		return false;
	if (this->table && before->first_hash + 1 != this->first_hash)
		return false;
	return this->pack ? before->skip + 1 == this->skip
			  : before->offset + IMAGE_BLOCK == this->offset;
}

/* Where the blocks from @first on end that become the same as it, one behind the other. */
static uint32_t run_end(const struct chunk *c, uint32_t first)
{
	enum fate fate = c->fate[first];
	uint32_t end = first + 1;

	while (end < c->blocks && c->fate[end] == fate)
		end++;
	for (uint32_t i = first + 1; c->scattered && i < end; i++)
		if (!follows(c, i))
			end = i;
	for (uint32_t i = first + 1; fate == FATE_PARENT && i < end; i++)
		if (!continues_reference(c, i))
			end = i;
	return end;
}

static void sink_reference(const struct chunk *c, struct image_writer *w, uint32_t first,
	uint32_t blocks, const struct block_place *place)
{
	image_writer_reference(w, c->run->object, chunk_address(c, first), place, blocks,
		place->table ? NULL : c->hash[first]);
}

/* Blocks that are to be stored become one of @rows, and are written with the others, except those that may be shared
 * with a file. */
static int sink_stored(struct chunk *c, struct image_writer *w, uint32_t first, uint32_t blocks,
	struct block_row *rows, size_t *row_count, struct err *e)
{
	if (c->run->file)
		return image_writer_file_data(w, c->run->object, chunk_address(c, first),
			*c->run->file, block_data(c, first), blocks, &c->hash[first], e);
	rows[(*row_count)++] = (struct block_row){.address = chunk_address(c, first),
		.data = block_data(c, first),
		.hashes = c->hash[first],
		.blocks = blocks};
	return 0;
}

static int sink_run(struct chunk *c, struct image_writer *w, uint32_t first, uint32_t blocks,
	struct block_row *rows, size_t *row_count, struct err *e)
{
	switch (c->fate[first]) {
	case FATE_STORE:
		return sink_stored(c, w, first, blocks, rows, row_count, e);
	case FATE_ZERO:
		image_writer_zero(w, c->run->object, chunk_address(c, first), blocks);
		return 0;
	case FATE_PARENT:
		sink_reference(c, w, first, blocks, &c->parent[first]);
		return 0;
	case FATE_PACKED: /* written already, all at once */
	case FATE_DROP:
	case FATE_OTHER:
		return 0;
	}
	BUG();
}

/* What was looked at block by block. */
static int sink_blocks(struct chunk *c, struct image_writer *w, struct err *e)
{
	struct block_row rows[CHUNK_BLOCKS];
	size_t row_count = 0;
	uint32_t end;

	if (c->pack_count && image_writer_packs(w, c->run->object, c->packed, c->packed_size,
				     c->packs, c->pack_count, e) < 0)
		return -1;
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = run_end(c, first);
		if (sink_run(c, w, first, end - first, rows, &row_count, e) < 0)
			return -1;
	}
	return row_count ? image_writer_rows(w, c->run->object, rows, row_count, e) : 0;
}

int chunk_write(struct chunk *c, struct image_writer *w, struct err *e)
{
	for (uint32_t i = 0; i < c->reference_count; i++) {
		const struct chunk_reference *r = &c->references[i];

		sink_reference(c, w, r->first, r->blocks, &r->place);
	}
	return c->settled ? 0 : sink_blocks(c, w, e);
}

/* As filter_zero() has it, by the hashes. */
static void settle_zero(struct chunk *c)
{
	static const uint8_t zeros[IMAGE_BLOCK];
	uint8_t hash[IMAGE_HASH_SIZE];

	hash128(zeros, sizeof(zeros), hash);
	for (uint32_t i = 0; i < c->blocks; i++)
		c->fate[i] =
			memcmp(c->hash[i], hash, sizeof(hash)) ? FATE_STORE : zero_fate(c, i);
}

static bool leave_unsettled(struct chunk *c)
{
	bool left = false;

	memset(&c->wanted, 0, sizeof(c->wanted));
	for (uint32_t i = 0; i < c->blocks; i++) {
		if (c->fate[i] != FATE_STORE)
			continue;
		c->fate[i] = FATE_OTHER;
		c->wanted.bits[i / 64] |= 1ull << i % 64;
		left = true;
	}
	return left;
}

int chunk_record_known(
	struct chunk *c, const struct blocks_to_write *to_write, bool *left, struct err *e)
{
	int r = c->run->hash(c->run->context, c->address[0], c->blocks, c->hash, e);

	*left = true;
	if (r)
		return r < 0 ? -1 : 0;
	begin_filters(c);
	if (to_write->parent && is_as_in_parent(c, to_write)) {
		*left = false;
		return chunk_write(c, to_write->writer, e);
	}
	settle_zero(c);
	if (to_write->parent)
		filter_parent(c, to_write);
	*left = leave_unsettled(c);
	return chunk_write(c, to_write->writer, e);
}

int chunk_filter(struct chunk *c, const struct blocks_to_write *to_write, struct err *e)
{
	bool clean = c->run->clean && to_write->parent;

	begin_filters(c);
	if (clean && !to_write->check_clean)
		filter_clean(c, to_write);
	if (c->settled)
		return 0;
	if (filter_read(c, e) < 0)
		return -1;
	filter_zero_and_hash(c);
	if (to_write->parent)
		filter_parent(c, to_write);
	if (clean && to_write->check_clean && check_clean(c, to_write, e) < 0)
		return -1;
	if (to_write->peers)
		peers_filter(to_write->peers, c, to_write->writer);
	if (c->packer)
		filter_pack(c);
	return 0;
}

uint64_t chunk_stored_bytes(const struct chunk *c)
{
	uint64_t bytes = c->pack_count ? c->packed_size : 0;

	for (uint32_t i = 0; !c->settled && i < c->blocks; i++)
		bytes += c->fate[i] == FATE_STORE ? IMAGE_BLOCK : 0;
	return bytes;
}

void chunk_free(struct chunk *c)
{
	packer_free(c->packer);
	free(c->packed);
	free(c->others);
	free(c->data);
	free(c);
}

static uint8_t *new_buffer(void)
{
	void *data;

	return posix_memalign(&data, IMAGE_BLOCK, CHUNK_SIZE) ? NULL : data;
}

struct chunk *chunk_new(const struct pack_choice *choice)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->method = choice->method;
	c->data = new_buffer();
	if (c->method) {
		c->packer = packer_new(choice);
		c->packed = new_buffer();
	}
	if (c->data && (!c->method || (c->packer && c->packed)))
		return c;
	chunk_free(c);
	return NULL;
}
