/* The private memory that an image has for each process, added up, against what there is. */
#include "supervisor/memory/memory_fits.h"

#include <unistd.h>

#include "lib/util.h"
#include "supervisor/memory/memory_room.h"

/* Memory of GPUs, which has addresses of its own among those of the process. */
static struct buf device_regions(const struct image *img)
{
	const struct image_region *regions;
	struct buf devices = {0};
	size_t count;

	regions = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (regions[i].kind == IMAGE_REGION_DEVICE)
			buf_push(&devices, struct image_region, &regions[i]);
	return devices;
}

static bool is_within(const struct buf *regions, uint64_t address)
{
	for (size_t i = 0; i < buf_count(regions, struct image_region); i++) {
		const struct image_region *g = buf_at(regions, struct image_region, i);

		if (address >= g->start && address < g->end)
			return true;
	}
	return false;
}

static uint64_t private_memory(const struct image *img)
{
	cleanup_buf struct buf devices = device_regions(img);
	uint64_t blocks = 0;

	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (image_extent_is_stored(x) && !x->object && !is_within(&devices, x->address))
			blocks += x->blocks;
	}
	return blocks * IMAGE_BLOCK;
}

static bool has_own_cgroups(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->process_count; i++)
		if (c->processes[i]->notes[IMAGE_NOTE_CGROUPS].data)
			return true;
	return false;
}

static int too_much(uint64_t need, uint64_t room, const char *whose, struct err *e)
{
	const double mib = 1 << 20;

	return err_set(e, 0,
		"the memory of the program's processes takes %.0f MiB after a restart, as "
		"pages that "
		"they have shared since fork(2) are then each process's own, and %s %.0f MiB: "
		"restart it where there is more memory",
		need / mib, whose, room / mib);
}

int memory_fits(const struct checkpoint *c, struct err *e)
{
	uint64_t need = 0, machine = memory_room_machine(), groups;

	for (size_t i = 0; i < c->process_count; i++)
		if (checkpoint_owner(c, i, IMAGE_SHARED_MEMORY) == i)
			need += private_memory(c->processes[i]);
	if (need > machine)
		return too_much(need, machine, "this machine has", e);
	groups = has_own_cgroups(c) ? UINT64_MAX : memory_room_groups(getpid());
	return need > groups ? too_much(need, groups, "the control group allows", e) : 0;
}
