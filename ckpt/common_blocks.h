/*
 * common_blocks.h - blocks that several processes of a tree have, such as those in common since fork(2), are stored
 * once in a checkpoint: the images of the others refer to the file that has them.
 *
 * Processes are written one after the other. What one has stored is found by its hash when the next are
 * written, and compared byte by byte: a hash can be made to match, and one process of a tree may be
 * somebody else's than another.
 */
#ifndef CKPT_COMMON_BLOCKS_H
#define CKPT_COMMON_BLOCKS_H

#include "ckpt/chunk.h"

struct peers;

/* @links: how many entries all chains together may get. Each is one more open file at a restart. */
struct peers *peers_new(size_t links);
void peers_free(struct peers *p);

/* What has been recorded in @w since this was last called for it can be found from now on. @parent and
 * @parent_source are as in struct blocks_to_write. Both writer and parent stay until peers_free(). Not while
 * blocks are written. */
void peers_add(struct peers *p, const struct image_writer *w, const struct image *parent,
	const uint32_t *parent_source);

/* Blocks of @c that are to be stored in @w become references to files of other processes that have them.
 * What fails only has them stored once more. Thread-safe. */
void peers_filter(struct peers *p, struct chunk *c, struct image_writer *w);

#endif
