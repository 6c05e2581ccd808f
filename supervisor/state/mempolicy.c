/*
 * mempolicy.c - policies read by calls in the process, and set again, for nodes
 * that are here.
 */
#include "supervisor/state/mempolicy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/test_hooks.h"

/* <linux/mempolicy.h> */
#define MPOL_F_ADDR           (1u << 1)
#define MPOL_F_RELATIVE_NODES (1u << 14)

/* The kernel takes one off (get_nodes() of mm/mempolicy.c). */
#define MAX_NODE (IMAGE_NODES + 1)

/* "00000000,00000003": 32 nodes each, the last group holds the first ones. */
static void read_nodes(uint8_t nodes[IMAGE_NODES / 8])
{
	cleanup_free char *status = procfs_status(getpid(), getpid(), NULL);
	const char *text = status ? status_value(status, "Mems_allowed") : "";
	size_t groups = 0;

	memset(nodes, 0, IMAGE_NODES / 8);
	for (const char *p = text; *p && *p != '\n'; p++)
		groups += *p == ',';
	for (size_t i = groups + 1; i-- > 0;) {
		char *end;
		uint32_t group = strtoul(text, &end, 16);

		if (end == text || (i + 1) * sizeof(group) > IMAGE_NODES / 8)
			return;
		memcpy(nodes + i * sizeof(group), &group, sizeof(group));
		text = end + 1;
	}
}

bool mempolicy_matters(void)
{
	/* Of this thread: each checkpoint is made by one of its own, and looks once. */
	static __thread int count;
	uint8_t nodes[IMAGE_NODES / 8];

	if (test_numa())
		return true;
	if (count)
		return count > 1;
	read_nodes(nodes);
	for (size_t i = 0; i < sizeof(nodes); i++)
		count += __builtin_popcount(nodes[i]);
	return count > 1;
}

/* ---- out ---- */

int mempolicy_read(struct remote *r, uint64_t scratch, uint64_t address,
	struct image_policy *policy, struct err *e)
{
	int64_t result;

	memset(policy, 0, sizeof(*policy));
	if (REMOTE_CALL(r, &result, e, SYS_get_mempolicy, scratch, scratch + 64, MAX_NODE,
		    address, address ? MPOL_F_ADDR : 0))
		return -1;
	/* A kernel without NUMA has no policies. */
	if (result == -ENOSYS)
		return 0;
	/* A mapping that is gone: threads of the lower half are not stopped. */
	if (result == -EFAULT && address)
		return 0;
	if (result < 0)
		return err_set(e, -result, "cannot read a memory policy of process %d",
			r->process->pid);
	return tracee_read(r->process->mem_fd, scratch, &policy->mode, sizeof(policy->mode),
		       e) || tracee_read(r->process->mem_fd, scratch + 64, policy->nodes,
				     sizeof(policy->nodes), e)
		       ? -1
		       : 0;
}

/* Where the mapping that begins at @start ends, by a walk along /proc/PID/maps from *@line on, to it or to
 * the first one behind it; 0 when there is none. */
static uint64_t find_end(const char **line, uint64_t start)
{
	while (**line) {
		char *dash;
		uint64_t at = strtoull(*line, &dash, 16);

		if (at >= start)
			return at == start ? strtoull(dash + 1, NULL, 16) : 0;
		*line += strcspn(*line, "\n");
		*line += **line == '\n';
	}
	return 0;
}

/* A line of /proc/PID/numa_maps: "7f2a8000 bind:0 anon=1". The thread's policy stands where
 * the memory has none, so memory that seems to have one is asked. */
static int dump_line(struct dump *d, struct remote *r, uint64_t scratch, const char *text,
	const char **maps, struct err *e)
{
	struct image_mempolicy m = {0};
	char *end;

	m.start = strtoull(text, &end, 16);
	if (end == text || !strncmp(end, " default", 8))
		return 0;
	if (mempolicy_read(r, scratch, m.start, &m.policy, e))
		return -1;
	if (!m.policy.mode)
		return 0;
	m.end = find_end(maps, m.start);
	if (m.end)
		buf_push(&d->policies, struct image_mempolicy, &m);
	return 0;
}

/* As much of numa_maps as is read at once: as with smaps (lib/procfs.c), the kernel walks the page tables of a mapping
 * once more whose line does not fit into the rest of a page. */
#define NUMA_STEP 2048

int mempolicy_dump(struct dump *d, struct remote *r, uint64_t scratch, struct err *e)
{
	cleanup_free char *numa_path = xasprintf("/proc/%d/numa_maps", d->process->task);
	cleanup_free char *maps_path = xasprintf("/proc/%d/maps", d->process->task);
	cleanup_free char *numa = NULL;
	cleanup_free char *maps = NULL;
	const char *line;
	size_t len;

	/* With the memory of another process, that one's are written. */
	if (d->memory_writer || !mempolicy_matters() || access(numa_path, F_OK))
		return 0;
	if (read_file_in_steps(numa_path, NUMA_STEP, &numa, &len, e) ||
		read_file(maps_path, &maps, &len, e))
		return -1;
	line = maps;
	for (const char *p = numa; p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (*p && dump_line(d, r, scratch, p, &line, e))
			return -1;
	}
	return 0;
}

/* ---- in ---- */

/* Leave out of @policy what is not here. Whether anything is left of it. */
static bool adapt_policy(struct image_policy *policy)
{
	uint8_t here[IMAGE_NODES / 8];
	bool any = false, left = false;

	if (policy->mode & MPOL_F_RELATIVE_NODES)
		return true;
	read_nodes(here);
	for (size_t i = 0; i < sizeof(here); i++) {
		any |= policy->nodes[i];
		policy->nodes[i] &= here[i];
		left |= policy->nodes[i];
	}
	return left || !any;
}

void mempolicy_plan_thread(
	struct restore_plan *p, struct batch_builder *b, const struct image_thread *t)
{
	struct image_policy policy = t->policy;

	if (policy.mode && adapt_policy(&policy))
		BATCH_ADD(b, "set the memory policy", SYS_set_mempolicy, policy.mode,
			plan_data(&p->plan, policy.nodes, sizeof(policy.nodes)), MAX_NODE);
}

void mempolicy_plan_memory(struct restore_plan *p)
{
	const struct image_mempolicy *m;
	size_t count;

	m = image_note_array(p->img, IMAGE_NOTE_MEMPOLICIES, struct image_mempolicy, &count);
	for (size_t i = 0; i < count; i++) {
		struct image_policy policy = m[i].policy;

		if (adapt_policy(&policy))
			BATCH_ADD(&p->memory, "set the policy of memory", SYS_mbind, m[i].start,
				m[i].end - m[i].start, policy.mode,
				plan_data(&p->plan, policy.nodes, sizeof(policy.nodes)),
				MAX_NODE, 0);
	}
}

static bool lacks_nodes(const struct image_policy *wanted)
{
	struct image_policy policy = *wanted;

	return wanted->mode && (!adapt_policy(&policy) || memcmp(policy.nodes, wanted->nodes,
								  sizeof(policy.nodes)));
}

bool mempolicy_lacks_nodes(const struct image *img)
{
	const struct image_mempolicy *m;
	const struct image_thread *t;
	size_t count;

	t = image_note_array(img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	for (size_t i = 0; i < count; i++)
		if (lacks_nodes(&t[i].policy))
			return true;
	m = image_note_array(img, IMAGE_NOTE_MEMPOLICIES, struct image_mempolicy, &count);
	for (size_t i = 0; i < count; i++)
		if (lacks_nodes(&m[i].policy))
			return true;
	return false;
}
