#include "supervisor/job/part_of_job.h"

#include <string.h>

#include "ckpt/members.h"
#include "ckpt/store.h"
#include "ckpt/store_dir.h"
#include "lib/util.h"
#include "supervisor/job/launcher_rank.h"

static int check_size(const struct part_of_job *p, const struct members *m, struct err *e)
{
	if (!p->size)
		return err_set(e, 0,
			"it is a checkpoint of a job of %zu ranks, which a launcher restarts: "
			"mpiexec "
			"-n "
			"%zu trecr-restart DIR",
			m->count, m->count);
	if ((size_t)p->size != m->count)
		return err_set(e, 0,
			"it is a checkpoint of a job of %zu ranks, and %d have been started",
			m->count, p->size);
	return 0;
}

int part_of_job_find(const char *path, struct part_of_job *p, struct err *e)
{
	struct members m = {0};
	int r = checkpoint_members(path, &p->whole, &m, NULL);

	if (r <= 0) {
		p->image = xstrdup(path);
		return 0;
	}
	if (!rank_of_launcher(&p->rank, &p->size))
		p->rank = p->size = 0;
	r = check_size(p, &m, e);
	if (!r) {
		p->image = xasprintf("%s/" STORE_PART "%d", p->whole, p->rank);
		memcpy(p->id, m.ids[p->rank], sizeof(p->id));
	}
	members_free(&m);
	return r;
}
