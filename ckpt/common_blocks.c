/* common_blocks.c - a table of the blocks that have been stored, by their hashes. */
#include "ckpt/common_blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt/hash.h"
#include "ckpt/image_write_private.h"

/* The table has 32 to 64 bytes for each block, so this takes up to 128 MiB, and 16 GiB of different
 * blocks can be found. */
#define BLOCKS_MOST (4u << 20)
#define SLOTS_LEAST (1u << 12)
/* What it takes to refer to a further file: so many blocks have been found in it. */
#define LINK_BLOCKS 16u

/* A writer whose blocks are in the table. */
struct peer {
	const struct image_writer *w;
	const struct image *parent;
	uint32_t *parent_source;
	size_t added; /* extents that have been looked at */
};

/* Where a block is. */
struct seen {
	uint32_t peer; /* index + 1, 0: none */
	uint32_t extent, block;
	uint32_t tag; /* of its hash */
};

/* The file at @source of @peer's chain. */
struct peer_link {
	uint32_t peer, source;
	uint32_t index; /* in the chain of the image that is written; 0: not there yet */
	int fd;
	uint64_t blocks; /* how many have been found in it */
};

struct peers {
	struct buf all; /* struct peer */
	struct seen *slots;
	size_t slot_count, used;
	pthread_mutex_t lock; /* of what follows */
	const struct image_writer *from;
	struct buf links; /* struct peer_link, of that */
	size_t links_left;
};

struct peers *peers_new(size_t links)
{
	struct peers *p = xcalloc(1, sizeof(*p));

	p->links_left = links;
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void peers_free(struct peers *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < buf_count(&p->all, struct peer); i++)
		free(buf_at(&p->all, struct peer, i)->parent_source);
	buf_free(&p->all);
	buf_free(&p->links);
	free(p->slots);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- the table ---- */

static const struct peer *peer_of(const struct peers *p, const struct seen *s)
{
	return buf_at(&p->all, struct peer, s->peer - 1);
}

static const struct image_extent *extent_of(const struct peers *p, const struct seen *s)
{
	return buf_at(&peer_of(p, s)->w->extents, struct image_extent, s->extent);
}

/* NULL: it is in the parent's files, and cannot be read. Blocks in the table are none of these. */
static const uint8_t *hash_of(const struct peers *p, const struct seen *s)
{
	const struct image_extent *x = extent_of(p, s);
	uint64_t number = (uint64_t)x->first_hash + s->block;

	if (x->hash_table) /* as in struct block_place */
		return image_hashes_of(
			peer_of(p, s)->parent, x->hash_table - 1, number, 1, NULL);
	return (const uint8_t *)peer_of(p, s)->w->hashes.data + number * IMAGE_HASH_SIZE;
}

static bool has_hash(const struct peers *p, const struct seen *s, const uint8_t *hash)
{
	const uint8_t *other = hash_of(p, s);

	return other && !memcmp(other, hash, IMAGE_HASH_SIZE);
}

static size_t home_of(const struct peers *p, const uint8_t *hash)
{
	uint64_t n;

	memcpy(&n, hash, sizeof(n));
	return n & (p->slot_count - 1);
}

static uint32_t tag_of(const uint8_t *hash)
{
	uint32_t tag;

	memcpy(&tag, hash + 12, sizeof(tag));
	return tag;
}

/* The slot of the block with @hash, or the free one for it. Blocks of @not are passed over: while it is
 * written, its arrays move. */
static struct seen *find_slot(
	const struct peers *p, const uint8_t *hash, const struct image_writer * not )
{
	size_t at = home_of(p, hash);
	uint32_t tag = tag_of(hash);

	while (p->slots[at].peer &&
		(p->slots[at].tag != tag || peer_of(p, &p->slots[at])->w == not ||
			!has_hash(p, &p->slots[at], hash)))
		at = (at + 1) & (p->slot_count - 1);
	return &p->slots[at];
}

/* Room for @blocks more. False: there is no memory for it. */
static bool make_room(struct peers *p, size_t blocks)
{
	size_t count = p->slot_count ? p->slot_count : SLOTS_LEAST, old_count = p->slot_count;
	struct seen *old = p->slots, *slots;

	while (count / 2 < p->used + blocks)
		count *= 2;
	if (count == old_count)
		return true;
	slots = calloc(count, sizeof(*slots));
	if (!slots)
		return false;
	p->slots = slots;
	p->slot_count = count;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].peer)
			*find_slot(p, hash_of(p, &old[i]), NULL) = old[i];
	free(old);
	return true;
}

static struct peer *find_peer(struct peers *p, const struct image_writer *w)
{
	for (size_t i = 0; i < buf_count(&p->all, struct peer); i++)
		if (buf_at(&p->all, struct peer, i)->w == w)
			return buf_at(&p->all, struct peer, i);
	return NULL;
}

static struct peer *add_peer(struct peers *p, const struct image_writer *w,
	const struct image *parent, const uint32_t *parent_source)
{
	struct peer new = {.w = w, .parent = parent};
	size_t count = 0;

	if (parent) {
		count = image_note_count(parent, IMAGE_NOTE_CHAIN, sizeof(struct image_chain));
		new.parent_source = xcalloc(count, sizeof(*new.parent_source));
		memcpy(new.parent_source, parent_source, count * sizeof(*parent_source));
	}
	buf_push(&p->all, struct peer, &new);
	return buf_at(&p->all, struct peer, buf_count(&p->all, struct peer) - 1);
}

/* The open file at @source of @peer's chain; -1: it is not open. */
static int source_fd(const struct peer *peer, uint32_t source)
{
	size_t count;

	for (unsigned i = 0; i < peer->w->file_count; i++)
		if (peer->w->files[i].source == source)
			return peer->w->files[i].fd;
	if (!peer->parent)
		return -1;
	count = image_note_count(peer->parent, IMAGE_NOTE_CHAIN, sizeof(struct image_chain));
	for (size_t i = 0; i < count; i++)
		if (peer->parent_source[i] == source)
			return image_source_fd(
				peer->parent, &(struct image_extent){.source = i});
	return -1;
}

static void add_extent(struct peers *p, struct seen s, const struct image_extent *x)
{
	for (s.block = 0; s.block < x->blocks; s.block++) {
		const uint8_t *hash = hash_of(p, &s);
		struct seen *slot = hash ? find_slot(p, hash, NULL) : NULL;

		if (!slot || slot->peer)
			continue;
		s.tag = tag_of(hash);
		*slot = s;
		p->used++;
	}
}

void peers_add(struct peers *p, const struct image_writer *w, const struct image *parent,
	const uint32_t *parent_source)
{
	struct peer *peer = find_peer(p, w);
	size_t count = buf_count(&w->extents, struct image_extent);

	if (!peer)
		peer = add_peer(p, w, parent, parent_source);
	for (; peer->added < count; peer->added++) {
		const struct image_extent *x =
			buf_at(&w->extents, struct image_extent, peer->added);
		struct seen s = {
			.peer = peer - (struct peer *)p->all.data + 1, .extent = peer->added};

		if (!image_extent_is_stored(x) || source_fd(peer, x->source) < 0)
			continue;
		if (p->used + x->blocks > BLOCKS_MOST || !make_room(p, x->blocks))
			return;
		add_extent(p, s, x);
	}
}

/* ---- links ---- */

/* @from is another writer than before: one is written after the other. */
static void forget_links(struct peers *p, const struct image_writer *from)
{
	p->from = from;
	p->links.len = 0;
}

static struct peer_link *find_link(struct peers *p, uint32_t peer, uint32_t source)
{
	struct peer_link new = {.peer = peer, .source = source};
	size_t count = buf_count(&p->links, struct peer_link);

	for (size_t i = 0; i < count; i++) {
		struct peer_link *l = buf_at(&p->links, struct peer_link, i);

		if (l->peer == peer && l->source == source)
			return l;
	}
	new.fd = source_fd(buf_at(&p->all, struct peer, peer - 1), source);
	buf_push(&p->links, struct peer_link, &new);
	return buf_at(&p->links, struct peer_link, count);
}

/* The link from @w to the file that has @s and @blocks - 1 blocks behind it. False: there is none yet. */
static bool get_link(struct peers *p, struct image_writer *w, const struct seen *s,
	uint32_t blocks, struct peer_link *link)
{
	struct peer_link *l;

	pthread_mutex_lock(&p->lock);
	if (p->from != w)
		forget_links(p, w);
	l = find_link(p, s->peer, extent_of(p, s)->source);
	l->blocks += blocks;
	if (!l->index && l->blocks >= LINK_BLOCKS && p->links_left) {
		p->links_left--;
		l->index = image_writer_peer(w, peer_of(p, s)->w, l->source);
	}
	*link = *l;
	pthread_mutex_unlock(&p->lock);
	return link->index;
}

/* ---- chunks ---- */

static struct block_place place_of(const struct peers *p, const struct seen *s)
{
	const struct image_extent *x = extent_of(p, s);
	const struct image_writer *w = peer_of(p, s)->w;

	if (x->kind == IMAGE_EXTENT_PACKED)
		return (struct block_place){
			.source = x->source,
			.pack = buf_at(&w->packs, struct image_pack, x->file_offset),
			.skip = x->skip + s->block,
		};
	return (struct block_place){.source = x->source,
		.offset = x->file_offset + (uint64_t)s->block * IMAGE_BLOCK};
}

/* The first block of the extent behind that of @s, if it is in the same file: its own, or one of its parent's,
 * as is all that is in the table. */
static void next_extent(const struct peers *p, struct seen *s)
{
	const struct image_extent *x = extent_of(p, s);

	s->block = 0;
	if (++s->extent == peer_of(p, s)->added || !image_extent_is_stored(x + 1) ||
		x[1].source != x->source)
		s->peer = 0;
}

/* Where block @i of @c is: where the one behind @before is, or else anywhere. */
static struct seen look_up(const struct peers *p, const struct chunk *c, uint32_t i,
	const struct seen *before, const struct image_writer *w)
{
	struct seen s = *before;

	if (s.peer && ++s.block == extent_of(p, &s)->blocks)
		next_extent(p, &s);
	if (!s.peer || !has_hash(p, &s, c->hash[i]))
		s = *find_slot(p, c->hash[i], w);
	return s;
}

/* Whether block @b is in the same file as @a, and right behind it. */
static bool is_next(const struct peers *p, const struct seen *a, const struct seen *b)
{
	struct block_place x, y;

	if (!a->peer || a->peer != b->peer)
		return false;
	x = place_of(p, a);
	y = place_of(p, b);
	if (x.source != y.source || x.pack != y.pack)
		return false;
	return x.pack ? x.skip + 1 == y.skip : x.offset + IMAGE_BLOCK == y.offset;
}

static bool read_whole(int fd, void *data, size_t size, uint64_t offset)
{
	return pread_all(fd, data, size, offset, "", NULL) == 0;
}

/* Read @blocks blocks at @place of @fd. NULL: not available. */
static const uint8_t *read_place(
	struct chunk *c, int fd, const struct block_place *place, uint32_t blocks)
{
	const struct image_pack *pack = place->pack;
	uint8_t *unpacked = c->others + (IMAGE_PACK_BLOCKS + 1) * (size_t)IMAGE_BLOCK;

	if (!pack)
		return read_whole(fd, c->others, blocks * (size_t)IMAGE_BLOCK, place->offset)
			       ? c->others
			       : NULL;
	if (!read_whole(fd, c->others, pack->size, pack->file_offset) ||
		hash64(c->others, pack->size) != pack->hash ||
		pack_unpack(pack->method, c->others, pack->used, unpacked,
			pack->blocks * (size_t)IMAGE_BLOCK))
		return NULL;
	return unpacked + place->skip * (size_t)IMAGE_BLOCK;
}

/* Blocks [@first, @end) of @c are one behind the other at @place, unless only their hashes are the same. */
static void refer_to_peer(struct chunk *c, uint32_t first, uint32_t end,
	struct block_place place, const struct peer_link *link)
{
	const uint8_t *data = read_place(c, link->fd, &place, end - first);

	if (!data)
		return;
	place.source = link->index;
	for (uint32_t i = first; i < end; i++, data += IMAGE_BLOCK) {
		if (!memcmp(data, c->data + (size_t)i * IMAGE_BLOCK, IMAGE_BLOCK)) {
			c->fate[i] = FATE_PARENT;
			c->parent[i] = place;
		}
		if (place.pack)
			place.skip++;
		else
			place.offset += IMAGE_BLOCK;
	}
}

void peers_filter(struct peers *p, struct chunk *c, struct image_writer *w)
{
	struct seen seen[CHUNK_BLOCKS] = {0}, before = {0};
	struct peer_link link;
	uint32_t end;

	if (!p->slot_count || c->run->hash || c->run->object)
		return;
	if (!c->others)
		c->others = malloc(CHUNK_SIZE);
	if (!c->others)
		return;
	for (uint32_t i = 0; i < c->blocks; i++) {
		if (c->fate[i] == FATE_STORE)
			seen[i] = look_up(p, c, i, &before, w);
		before = seen[i];
	}
	for (uint32_t first = 0; first < c->blocks; first = end) {
		end = first + 1;
		if (!seen[first].peer)
			continue;
		while (end < c->blocks && is_next(p, &seen[end - 1], &seen[end]))
			end++;
		if (get_link(p, w, &seen[first], end - first, &link))
			refer_to_peer(c, first, end, place_of(p, &seen[first]), &link);
	}
}
