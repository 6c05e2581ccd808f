/*
 * Compressed blocks of a process that comes back: decompressed here, and written into its memory when that has been
 * mapped. The loader has no library to do it with.
 */
#include "supervisor/memory/decompress.h"

#include "lib/address_ranges.h"
#include "supervisor/memory/memory_restore.h"
#include "supervisor/memory/place_blocks.h"

/* Memory of GPUs is for the lower half to write (split/device_restore.c). A pack that is in
 * part of lazy memory comes as a whole: what writes to that, waits for it to be filled. */
static bool is_ours(const struct new_process *np, const struct image_extent *x)
{
	uint64_t end = x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
	bool lazy;

	if (x->kind != IMAGE_EXTENT_PACKED || restore_plan_is_on_device(&np->plan, x))
		return false;
	return address_ranges_part(&np->plan.lazy_ranges, x->address, end, &lazy) < end ||
	       !lazy;
}

/* What has been inherited is there already. */
static void list_extent(
	const struct new_process *np, const struct image_extent *x, struct buf *list)
{
	uint64_t end = x->address + (uint64_t)x->blocks * IMAGE_BLOCK, to;
	bool inherited;

	for (uint64_t at = x->address; at < end; at = to) {
		to = address_ranges_part(&np->plan.inherited.same, at, end, &inherited);
		if (!inherited)
			place_blocks_add(list, np->img, x, (at - x->address) / IMAGE_BLOCK,
				(to - at) / IMAGE_BLOCK);
	}
}

int new_process_unpack(struct new_process *np)
{
	cleanup_buf struct buf list = {0};
	const struct image_extent *x;
	size_t count;

	if (!(np->img->super.incompat & IMAGE_INCOMPAT_PACKS) || !np->plan.filled)
		return 0;
	x = image_extents(np->img, 0, &count);
	for (size_t i = 0; i < count; i++)
		if (is_ours(np, &x[i]))
			list_extent(np, &x[i], &list);
	return list.len ? place_blocks(&list, np->process.pid, np->process.mem_fd,
				  np->plan.wanted_threads, np->e)
			: 0;
}
