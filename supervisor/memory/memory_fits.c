/* The private memory that an image has for each process, added up, against the memory that is available here, and that
 * was there. */
#include "supervisor/memory/memory_fits.h"

#include <unistd.h>

#include "lib/util.h"
#include "supervisor/memory/memory_available.h"

/* What is told: so many bytes more, and this part of what it was before. */
#define GROWTH_LEAST (256ull << 20)
#define GROWTH_PART  4

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

static bool is_private(const struct buf *devices, const struct image_extent *x)
{
	return image_extent_is_stored(x) && !x->object && !is_within(devices, x->address);
}

static uint64_t private_memory(const struct image *img)
{
	cleanup_buf struct buf devices = device_regions(img);
	uint64_t blocks = 0;

	for (size_t i = 0; i < img->extent_count; i++)
		if (is_private(&devices, &img->extents[i]))
			blocks += img->extents[i].blocks;
	return blocks * IMAGE_BLOCK;
}

/* The part of it that another process's file has. */
static uint64_t common_memory(const struct image *img)
{
	cleanup_buf struct buf devices = device_regions(img);
	const uint32_t *names;
	uint64_t blocks = 0;
	size_t count;

	names = image_note_array(img, IMAGE_NOTE_CHAIN_NAMES, uint32_t, &count);
	for (size_t i = 0; count && i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (x->source < count && names[x->source] && is_private(&devices, x))
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

int memory_fits(const struct checkpoint *c, uint64_t shared, struct err *e)
{
	uint64_t need = 0, machine = memory_available_machine(), groups;

	for (size_t i = 0; i < c->process_count; i++)
		if (checkpoint_owner(c, i, IMAGE_SHARED_MEMORY) == i)
			need += private_memory(c->processes[i]);
	need -= shared < need ? shared : need;
	if (need > machine)
		return too_much(need, machine, "this machine has", e);
	groups = has_own_cgroups(c) ? UINT64_MAX : memory_available_groups(getpid());
	return need > groups ? too_much(need, groups, "the control group allows", e) : 0;
}

void memory_tell_growth(
	const struct checkpoint *c, uint64_t shared, void (*notice)(const char *line))
{
	uint64_t need = 0, common = 0;
	const double mib = 1 << 20;
	cleanup_free char *line = NULL;

	for (size_t i = 0; notice && i < c->process_count; i++) {
		if (checkpoint_owner(c, i, IMAGE_SHARED_MEMORY) != i)
			continue;
		need += private_memory(c->processes[i]);
		common += common_memory(c->processes[i]);
	}
	need -= shared < need ? shared : need;
	common -= shared < common ? shared : common;
	if (common < GROWTH_LEAST || common < (need - common) / GROWTH_PART)
		return;
	line = xasprintf(
		"the memory of the program's processes takes up to %.0f MiB from now on, "
		"where it "
		"may have taken %.0f MiB before: pages that they have shared since "
		"fork(2) "
		"are each process's own",
		need / mib, (need - common) / mib);
	notice(line);
}
