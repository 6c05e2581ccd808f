/* checkpoint_common_blocks.c - those with enough memory, as far as a restart may open their files. */
#include "supervisor/run/checkpoint_common_blocks.h"

#include "ckpt/common_blocks.h"
#include "supervisor/fd_table/descriptors.h"

/* What has less is stored alone, so that its file is a core file for a debugger. */
#define PEER_MEMORY (4ull << 20)
/* Files of others that all images together refer to, at most. */
#define PEER_LINKS 1024u

bool checkpoint_may_be_peer(const struct checkpoint_work *w, size_t i)
{
	return w->tree.processes[i]->owner[IMAGE_SHARED_MEMORY] == i &&
	       w->dumps[i].memory_bytes >= PEER_MEMORY;
}

/* Whether it looks for those of others. If it was saved before, it refers to what they had then: what has
 * changed since is its own, and its chain need not grow with each checkpoint. */
static bool looks_for_peers(const struct checkpoint_work *w, size_t i)
{
	return !checkpoint_parent_process(w, w->tree.processes[i]->vpid);
}

/* How many more of them there may be: they are not what a checkpoint is refused for. Each may be open twice in
 * one process. Further descriptors may yet be found in messages, so that there is as much room again. */
static size_t links_allowed(const struct checkpoint_work *w, uint64_t besides)
{
	size_t taken = 0, allowed;

	for (size_t i = 0; i < w->process_count; i++)
		taken += image_writer_peers(w->writers[i]);
	allowed = taken < PEER_LINKS ? PEER_LINKS - taken : 0;
	while (allowed && !fd_dump_fits(w->fds, besides + 4 * allowed))
		allowed /= 2;
	return allowed;
}

void checkpoint_begin_peers(struct checkpoint_work *w, uint64_t besides)
{
	size_t peers = 0, look = 0;

	w->roles = xcalloc(w->process_count, sizeof(*w->roles));
	for (size_t i = 0; i < w->process_count; i++) {
		struct peer_role *role = &w->roles[i];

		role->is_peer = checkpoint_may_be_peer(w, i);
		role->looks = role->is_peer && looks_for_peers(w, i);
		peers += role->is_peer;
		look += role->looks;
		if (role->looks)
			w->last_looks = i;
	}
	if (look && peers > 1)
		w->peers = peers_new(links_allowed(w, besides));
}
