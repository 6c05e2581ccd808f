/*
 * sysv_shm.c - segments of System V shared memory. Mappings lead to most of them, and have their
 * contents.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/sysv/sysv_kinds.h"
#include "supervisor/sysv/sysv_owner.h"

#ifndef SHM_HUGE_SHIFT /* <linux/shm.h>, which the C library's cannot stand beside */
#define SHM_HUGE_SHIFT 26
#endif

/* ---- checkpoint ---- */

static int highest_segment(struct sysv_asker *a, int64_t *highest, struct err *e)
{
	return SYSV_ASK(a, highest, e, SYS_shmctl, 0, SHM_INFO, a->scratch + SYSV_ANSWER);
}

static int ask_segment(
	struct sysv_asker *a, int call, int which, struct sysv_status *s, struct err *e)
{
	struct shmid_ds d;
	int64_t id;

	if (SYSV_ASK(a, &id, e, SYS_shmctl, which, call, a->scratch + SYSV_ANSWER))
		return -1;
	if (id < 0)
		return -id;
	if (sysv_answer(a, &d, sizeof(d), e))
		return -1;
	sysv_status_begin(s, &d.shm_perm, call == IPC_STAT ? which : id, d.shm_ctime);
	s->size = d.shm_segsz;
	s->attached = d.shm_nattch;
	s->used = sysv_later(d.shm_ctime, sysv_later(d.shm_atime, d.shm_dtime));
	sysv_status_add_user(s, d.shm_cpid);
	sysv_status_add_user(s, d.shm_lpid);
	return 0;
}

/* SHM_STAT_ANY counts by index: the lower bits of an id, of which there are more on a kernel that was started with
 * ipcmni_extend (ipc/util.h). */
static const int index_masks[] = {0x7fff, 0xffffff};

/* A process may have attached a segment before it gave up what that took, or have set a mode that keeps out its owner. */
static int ask_attached_segment(
	struct sysv_asker *a, int id, struct sysv_status *s, struct err *e)
{
	int r = ask_segment(a, IPC_STAT, id, s, e);

	for (size_t i = 0; r == EACCES && i < ARRAY_SIZE(index_masks); i++) {
		r = ask_segment(a, SHM_STAT_ANY, id & index_masks[i], s, e);
		if (r || s->id == id)
			continue;
		sysv_status_free(s);
		r = EACCES;
	}
	return r;
}

static unsigned huge_shift(const struct vma *v)
{
	return v->flags & VMA_HUGETLB ? __builtin_ctzll(v->page_size) : 0;
}

/* Of the segment that @a has attached at @at. */
static int find_huge_shift(
	const struct sysv_asker *a, uint64_t at, struct image_object *o, struct err *e)
{
	struct vma_list list = {0};

	if (procfs_vmas(a->process ? a->process->task : getpid(), &list, e))
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (list.v[i].start == at)
			o->args[1] = huge_shift(&list.v[i]);
	vma_list_free(&list);
	return 0;
}

static int read_segment(
	const struct sysv_asker *a, uint64_t at, struct fd_object *o, struct err *e)
{
	uint64_t size;

	if (find_huge_shift(a, at, &o->o, e))
		return -1;
	size = sysv_mapped_size(&o->o);
	return sysv_read(a, at, buf_grow(&o->bytes, size), size, e);
}

/* Through another mapping, as none of the tree's has all of it. */
static int copy_segment(
	struct sysv_asker *a, struct fd_object *o, const struct sysv_status *s, struct err *e)
{
	int64_t at, r;
	int failed;

	if (SYSV_ASK(a, &at, e, SYS_shmat, o->o.inode, 0, SHM_RDONLY))
		return -1;
	if (at < 0 && at > -4096)
		return err_set(e, -at, "%s: cannot attach it%s", o->text,
			at == -EACCES ? SYSV_MODE_HINT : "");
	failed = read_segment(a, at, o, e);
	if (SYSV_ASK(a, &r, failed ? NULL : e, SYS_shmdt, at))
		return -1;
	return failed;
}

static int is_segment_unfinished(const struct fd_object *o, struct err *e)
{
	if (o->attached != o->seen)
		return err_set(e, 0,
			"%s: a process that is not being saved has also attached it (it is "
			"attached %lu times, %lu "
			"of them by the program)",
			o->text, o->attached, o->seen);
	return !o->stored && !o->bytes.len;
}

bool sysv_is_segment(const struct vma *v)
{
	return v->shared && !strncmp(v->name, "/SYSV", 5);
}

int sysv_dump_mapping(struct fd_dump *d, struct process *p, const struct vma *v,
	bool *need_memory, struct err *e)
{
	uint32_t number = fd_object_numbered(d, IMAGE_OBJECT_SHM, v->inode);
	struct sysv_status s = {0};
	struct sysv_asker a;
	struct fd_object added, *o;
	int r;

	if (!number) {
		if (sysv_asker_begin(&a, p, e))
			return -1;
		r = ask_attached_segment(&a, v->inode, &s, e);
		if (sysv_asker_end(&a, r < 0, e)) {
			sysv_status_free(&s);
			return -1;
		}
		if (r)
			return err_set(e, r,
				"process %d (%s): cannot query System V shared memory "
				"%" PRIu64,
				p->pid, p->comm, v->inode);
		added = sysv_new_object(d, &sysv_shm, &s);
		number = fd_object_add(d, &added);
		sysv_status_free(&s);
	}
	o = fd_object_at(d, number);
	o->o.args[1] = huge_shift(v);
	o->seen++;
	*need_memory = !o->stored && !v->offset && v->end - v->start >= o->o.size;
	o->stored |= *need_memory;
	return number;
}

void sysv_leave_out(struct fd_dump *d, const struct vma *v)
{
	buf_push(&d->lowers, uint64_t, &v->inode);
}

static bool maps_segment(const struct process *p, uint64_t id)
{
	struct vma_list now;
	bool found = false;

	if (procfs_maps(p->task, &now, NULL))
		return false;
	for (size_t i = 0; i < now.count && !found; i++)
		found = sysv_is_segment(&now.v[i]) && now.v[i].inode == id;
	vma_list_free(&now);
	return found;
}

/* Threads of lower halves are not stopped: what a process has attached since its memory was looked at is theirs. */
static bool is_lowers(
	const struct fd_dump *d, const struct tree *tree, const struct sysv_status *s)
{
	for (size_t i = 0; i < buf_count(&d->lowers, uint64_t); i++)
		if (*buf_at(&d->lowers, uint64_t, i) == (uint64_t)s->id)
			return true;
	for (size_t i = 0; s->attached && i < tree->living; i++)
		if (maps_segment(tree->processes[i], s->id))
			return true;
	return false;
}

/* ---- restart ---- */

static bool is_segment_damaged(const struct image_object *o)
{
	return o->args[1] > 40;
}

/* As shmctl(2) with IPC_STAT, whatever the segment's mode. */
static int examine_segment(int id, struct shmid_ds *d)
{
	int r = shmctl(id, IPC_STAT, d);

	for (size_t i = 0; r && errno == EACCES && i < ARRAY_SIZE(index_masks); i++)
		if (shmctl(id & index_masks[i], SHM_STAT_ANY, d) == id)
			r = 0;
	return r;
}

static int look_at_segment(const struct image_object *o, struct sysv_found *found)
{
	struct shmid_ds d;

	if (examine_segment(o->inode, &d))
		return -1;
	*found = (struct sysv_found){
		.key = d.shm_perm.__key,
		.size = d.shm_segsz,
		.used_by_now = d.shm_nattch || sysv_is_alive(d.shm_cpid, d.shm_ctime) ||
			       sysv_is_alive(d.shm_lpid, sysv_later(d.shm_atime, d.shm_dtime)),
		.ever_used = true,
	};
	return 0;
}

static int find_segment(key_t key)
{
	return shmget(key, 0, 0);
}

static int make_segment(const struct image_object *o)
{
	int flags = SYSV_NEW;

	if (o->args[1])
		flags |= SHM_HUGETLB | (int)(o->args[1] << SHM_HUGE_SHIFT);
	return shmget(o->dev, o->size, flags);
}

static const char *why_not_made(const struct image_object *o)
{
	return o->args[1] ? "cannot create it in huge pages (are enough reserved? see "
			    "vm.nr_hugepages)"
			  : NULL;
}

static void remove_segment(int id)
{
	(void)shmctl(id, IPC_RMID, NULL);
}

static int set_segment(int id, void *d)
{
	return shmctl(id, IPC_SET, d);
}

static int let_into_segment(int id)
{
	struct shmid_ds d;

	return sysv_let_in(id, examine_segment(id, &d), &d.shm_perm, set_segment, &d);
}

bool sysv_attaches(const struct image *process, uint32_t number)
{
	const struct image_region *g;
	size_t count;

	g = image_note_array(process, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (g[i].kind == IMAGE_REGION_SYSV && g[i].object == number)
			return true;
	return false;
}

static bool is_to_be_attached(const struct fd_restore *r, uint32_t number)
{
	for (size_t i = 0; i < r->checkpoint->process_count; i++)
		if (sysv_attaches(r->checkpoint->processes[i], number))
			return true;
	return false;
}

static int fill_segment(
	struct fd_restore *r, uint32_t number, const struct image_object *o, struct err *e)
{
	struct image_object as_set = *o;
	struct shmid_ds d;
	int id = o->inode, failed;
	void *p = shmat(id, NULL, 0);

	if (p == (void *)-1)
		return err_set(e, errno, "cannot attach it");
	memset(p, 0, sysv_mapped_size(o));
	failed = fd_contents(r->job, number, sysv_mapped_size(o), p, e);
	if (shmdt(p) || failed)
		return -1;
	if (shmctl(id, IPC_STAT, &d))
		return err_set(e, errno, "cannot examine it");
	/* The first process that has attached it sets its mode: restore_plan_segment_modes(). */
	if (is_to_be_attached(r, number))
		as_set.mode |= 0600;
	if (sysv_set_perm(&as_set, &d.shm_perm, true, set_segment, &d) ||
		(o->mode & SHM_LOCKED && shmctl(id, SHM_LOCK, NULL)))
		return err_set(e, errno, "cannot set its owner and mode");
	return 0;
}

const struct sysv_kind sysv_shm = {
	.kind = IMAGE_OBJECT_SHM,
	.what = "System V shared memory",
	.next_id = "/proc/sys/kernel/shm_next_id",
	.get = SYS_shmget,
	.set = SYS_shmctl,
	.stat = SHM_STAT,
	.stat_any = SHM_STAT_ANY,
	.highest = highest_segment,
	.ask = ask_segment,
	.is_left_out = is_lowers,
	.copy = copy_segment,
	.is_unfinished = is_segment_unfinished,
	.is_damaged = is_segment_damaged,
	.look = look_at_segment,
	.find = find_segment,
	.make = make_segment,
	.why_not_made = why_not_made,
	.let_in = let_into_segment,
	.fill = fill_segment,
	.remove = remove_segment,
};
