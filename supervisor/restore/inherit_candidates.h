/*
 * restore/inherit_candidates.h - memory that processes of a restart could have from their makers, as fork(2) had
 * given it to them: which, and where the image has its contents.
 */
#ifndef SUPERVISOR_RESTORE_INHERIT_CANDIDATES_H
#define SUPERVISOR_RESTORE_INHERIT_CANDIDATES_H

#include "ckpt/store.h"
#include "lib/util.h"

/* Regions of processes that overlap, as one. In all of them they have the same advice and flags that matter for
 * how pages are made. */
struct inherit_area {
	uint64_t start, end;
	uint32_t flags, advice; /* of struct image_region */
	bool usable;
};

/* Blocks that a process has, one behind the other in memory and where they are stored. Two with the same file, pack
 * and base have the same contents at the same addresses. */
struct stored_run {
	uint64_t start, end;
	uint64_t pack; /* its place in the file; NOT_PACKED: none */
	uint64_t base; /* place in the file or pack, less the address */
	uint32_t file;
	const struct image *img;
	const struct image_extent *x;
};
#define NOT_PACKED UINT64_MAX

struct inherit_candidates {
	size_t count;     /* processes */
	struct buf areas; /* struct inherit_area, by address; they do not overlap */
	struct buf *runs; /* by process: struct stored_run, by address, in usable areas */
	struct buf files; /* of stored_run.file */
};

/* All of @c's. Where this machine, or the limits that we are under, leave no room for memory that is in more
 * processes than use it, there is nothing. */
void inherit_candidates_find(struct inherit_candidates *k, const struct checkpoint *c);
void inherit_candidates_free(struct inherit_candidates *k);

/* Whether the region @g, number @i of the @count at @all of its process, lies in a usable area. */
bool inherit_can_have(const struct inherit_candidates *k, const struct image_region *all,
	size_t count, size_t i);

/* The area that @address is in, or NULL. */
struct inherit_area *inherit_area_at(const struct inherit_candidates *k, uint64_t address);

#endif
