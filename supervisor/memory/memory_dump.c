/*
 * Mappings at a checkpoint: what each is, and which of its pages are to be stored. Their
 * contents are read later (ckpt/blocks.h).
 */
#include "supervisor/memory/memory_dump.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lib/uring_abi.h"
#include "shared/batch.h"
#include "shared/address_windows.h"
#include "supervisor/fd/shared_mapping.h"
#include "supervisor/fd_kinds/saved_files.h"
#include "supervisor/memory/aio_dump.h"
#include "supervisor/memory/uffd_anchor.h"
#include "supervisor/memory/aio_polls.h"
#include "supervisor/memory/maps_ahead.h"
#include "supervisor/memory/memory_source.h"
#include "supervisor/memory/private_pages.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/split/device_memory.h"
#include "supervisor/state/core_notes.h"
#include "supervisor/sysv/sysv.h"
#include "supervisor/target/module.h"
#include "supervisor/target/pagemap.h"
#include "supervisor/target/present_pages.h"
#include "supervisor/uring/uring.h"

/* Smaller shared memory is read as a whole, holes too. */
enum { WORTH_A_LOOK = 1 << 20 };

static const struct {
	uint64_t vma;
	uint32_t advice;
} advices[] = {
	{VMA_SEQUENTIAL, IMAGE_ADVICE_SEQUENTIAL},
	{VMA_RANDOM, IMAGE_ADVICE_RANDOM},
	{VMA_DONTFORK, IMAGE_ADVICE_DONTFORK},
	{VMA_DONTDUMP, IMAGE_ADVICE_DONTDUMP},
	{VMA_WIPEONFORK, IMAGE_ADVICE_WIPEONFORK},
	{VMA_MERGEABLE, IMAGE_ADVICE_MERGEABLE},
	{VMA_HUGEPAGE, IMAGE_ADVICE_HUGEPAGE},
	{VMA_NOHUGEPAGE, IMAGE_ADVICE_NOHUGEPAGE},
};

static const struct {
	uint64_t vma;
	const char *what;
} refusals[] = {
	{VMA_UFFD | VMA_UFFD_WP, "is watched by userfaultfd"},
	{VMA_SHADOWSTACK, "is a shadow stack"},
	{VMA_IO, "is device memory"},
	{VMA_PFNMAP, "is device memory"},
	{VMA_SEALED, "is sealed (mseal)"},
};

static int refuse_mapping(struct dump *d, const struct vma *v, const char *what, struct err *e)
{
	return err_set(e, 0, "region %lx-%lx %s of process %d (%s) %s, which is not supported",
		(unsigned long)v->start, (unsigned long)v->end, v->name, d->process->pid,
		d->process->comm, what);
}

static bool lock_on_fault_is_shown = true;

/* Seen on a page of our own, if we may lock one. */
static void look_at_lock_on_fault(void)
{
	void *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vma_list own = {0};

	if (page == MAP_FAILED)
		return;
	if (!syscall(SYS_mlock2, page, 4096, MLOCK_ONFAULT) &&
		!procfs_vmas(getpid(), &own, NULL))
		for (size_t i = 0; i < own.count; i++)
			if (own.v[i].start <= (uintptr_t)page && (uintptr_t)page < own.v[i].end)
				lock_on_fault_is_shown = own.v[i].flags & VMA_LOCKONFAULT;
	vma_list_free(&own);
	(void)munmap(page, 4096);
}

/* Whether smaps shows MLOCK_ONFAULT here: the kernel is looked at once. */
static bool shows_lock_on_fault(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_at_lock_on_fault);
	return lock_on_fault_is_shown;
}

/* Where the kernel does not show it: with mlock(2), all pages of such memory would be there. */
static bool is_locked_on_fault(const struct vma *v)
{
	if (v->flags & VMA_LOCKONFAULT)
		return true;
	return v->flags & VMA_LOCKED && !*v->name && !v->shared && v->prot & PROT_WRITE &&
	       v->own_bytes < v->end - v->start && !shows_lock_on_fault();
}

static struct image_region new_region(struct dump *d, const struct vma *v)
{
	struct image_region r = {
		.start = v->start,
		.end = v->end,
		.offset = v->offset,
		.page_size = v->page_size,
		.prot = v->prot,
		.max_prot = v->max_prot,
		.tag = IMAGE_TAG_UPPER,
		.name = image_writer_string(d->writer, v->name),
	};

	for (size_t i = 0; i < ARRAY_SIZE(advices); i++)
		if (v->flags & advices[i].vma)
			r.advice |= advices[i].advice;
	if (v->flags & VMA_GROWSDOWN)
		r.flags |= IMAGE_REGION_GROWSDOWN;
	if (v->flags & VMA_NORESERVE)
		r.flags |= IMAGE_REGION_NORESERVE;
	if (v->flags & VMA_LOCKED)
		r.flags |= IMAGE_REGION_LOCKED;
	if (is_locked_on_fault(v))
		r.flags |= IMAGE_REGION_LOCKONFAULT;
	if (v->flags & VMA_DROPPABLE)
		r.flags |= IMAGE_REGION_DROPPABLE;
	if (v->flags & VMA_HUGETLB)
		r.flags |= IMAGE_REGION_HUGETLB;
	if (!strcmp(v->name, "[stack]"))
		r.flags |= IMAGE_REGION_STACK;
	if (!strcmp(v->name, "[heap]"))
		r.flags |= IMAGE_REGION_HEAP;
	return r;
}

/* All of a private file mapping, as memory that no longer needs the file. */
static int dump_whole(
	struct dump *d, const struct vma *v, struct image_region *r, struct err *e)
{
	struct memory_source *source = memory_source_own(d, v, false);
	uint64_t end = v->end;
	char byte;

	/* Behind the end of the file there is nothing to read (SIGBUS). */
	while (end > v->start &&
		tracee_read(d->process->mem_fd, end - IMAGE_BLOCK, &byte, 1, NULL))
		end -= IMAGE_BLOCK;
	r->kind = IMAGE_REGION_ANON;
	private_pages_add_region(d, r);
	memory_source_run(d, source, v->start, end, false, false);
	image_writer_range(d->writer, v->start, v->end, private_pages_segment_flags(v), true);
	return 0;
}

/* Number (from 1) of the module in the note, adding it when new. */
static int find_module(struct dump *d, const struct vma *v, bool identify, uint32_t *number,
	bool *deleted, struct err *e)
{
	uint32_t path = image_writer_string(d->writer, v->name);
	size_t count = buf_count(&d->modules_used, struct image_module);
	struct image_module m = {0};

	*deleted = false;
	for (size_t i = 0; i < count; i++) {
		struct image_module *known = buf_at(&d->modules_used, struct image_module, i);

		if (known->path == path && known->inode == v->inode &&
			!!(known->flags & IMAGE_MODULE_HASHED || known->build_id_size) ==
				identify) {
			*number = i + 1;
			return 0;
		}
	}
	m.inode = v->inode;
	if (identify ? module_identify(d->modules, v->name, v->inode, &m, e)
		     : module_look(v->name, &m, e))
		return -1;
	m.path = path;
	*deleted = m.flags & IMAGE_MODULE_DELETED;
	if (*deleted)
		return 0;
	buf_push(&d->modules_used, struct image_module, &m);
	*number = count + 1;
	return 0;
}

static int dump_private_file(
	struct dump *d, int pagemap, const struct vma *v, struct image_region *r, struct err *e)
{
	struct stat st;
	bool deleted;
	int object;

	if (strstr(v->name, " (deleted)")) {
		object = fd_dump_private_mapping(d->fds, d->process->task, v, e);
		if (object < 0)
			return -1;
		r->object = object;
		if (!object)
			return dump_whole(d, v, r, e);
		r->kind = IMAGE_REGION_PRIVATE;
		return private_pages_dump(d, pagemap, v, r, e);
	}
	/* A private mapping of /dev/zero is anonymous memory under another name. */
	if (!strcmp(v->name, "/dev/zero") && !stat(v->name, &st) && S_ISCHR(st.st_mode)) {
		r->kind = IMAGE_REGION_ANON;
		return private_pages_dump(d, pagemap, v, r, e);
	}
	if (find_module(d, v, true, &r->module, &deleted, e))
		return -1;
	if (deleted || d->portable)
		return dump_whole(d, v, r, e);
	r->kind = IMAGE_REGION_FILE;
	return private_pages_dump(d, pagemap, v, r, e);
}

/* Shared memory that only mappings lead to: from a process's memory into the job's file. Parts
 * that the first @known runs, of earlier mappings of whatever process, have are left out. */
static void add_shared_part(struct dump *d, struct memory_source *source, uint64_t at,
	uint64_t end, uint32_t object, size_t known)
{
	while (at < end) {
		uint64_t stop = end;
		bool covered = false;

		for (size_t i = 0; i < known; i++) {
			struct block_run *run = buf_at(d->shared_runs, struct block_run, i);

			if (run->object != object)
				continue;
			if (run->address <= at && at < run->address + run->size) {
				covered = true;
				stop = run->address + run->size;
				break;
			}
			if (run->address > at && run->address < stop)
				stop = run->address;
		}
		if (!covered) {
			struct block_run run = {.address = at,
				.size = stop - at,
				.object = object,
				.read = memory_source_read,
				.context = source};

			buf_push(d->shared_runs, struct block_run, &run);
			d->memory_bytes += run.size;
		}
		at = stop;
	}
}

/* The pages of @all, which is of one mapping, that exist; @runs: struct present_run. */
static int find_present(
	struct dump *d, const struct present_run *all, struct buf *runs, struct err *e)
{
	struct process *p = d->process;
	struct remote r;
	uint64_t scratch;
	int failed;

	if (remote_begin(&r, p, &p->threads[0], e))
		return -1;
	scratch = remote_scratch(&r, PRESENT_SCRATCH, e);
	failed = !scratch || present_pages(&r, all->start, all->end, scratch, runs, e);
	return remote_end(&r, failed ? NULL : e) || failed ? -1 : 0;
}

/* Other members of the job save the rest of the object. */
static void clip_to_part(
	const struct dump *d, const struct vma *v, uint32_t object, struct present_run *all)
{
	uint64_t from, to;

	fd_dump_part(d->fds, object, &from, &to);
	if (from > v->offset + (all->end - v->start))
		all->start = all->end;
	else if (from > v->offset)
		all->start = v->start + (from - v->offset);
	if (to < v->offset)
		all->end = all->start;
	else if (to < v->offset + (all->end - v->start))
		all->end = v->start + (to - v->offset);
}

/* Pages that have been swapped out since memory was listed are not there for mincore(2) either. No swap space that is
 * used, none of them. */
static int is_swapped_now(
	const struct dump *d, const struct present_run *all, bool *swapped, struct err *e)
{
	struct vma_list now;
	struct sysinfo system;

	*swapped = false;
	if (!sysinfo(&system) && system.totalswap == system.freeswap)
		return 0;
	if (procfs_vmas(d->process->task, &now, e))
		return -1;
	for (size_t i = 0; i < now.count; i++)
		*swapped |= now.v[i].start < all->end && now.v[i].end > all->start &&
			    now.v[i].swapped;
	vma_list_free(&now);
	return 0;
}

/* As find_present(), or all pages, where those that exist cannot be told. */
static int find_pages(struct dump *d, const struct vma *v, const struct present_run *all,
	struct buf *runs, struct err *e)
{
	bool unknown = all->end - all->start < WORTH_A_LOOK || !fd_dump_has_holes(d->fds, v);

	if (!unknown && (find_present(d, all, runs, e) || is_swapped_now(d, all, &unknown, e)))
		return -1;
	if (!unknown)
		return 0;
	runs->len = 0;
	buf_push(runs, struct present_run, all);
	return 0;
}

static int add_shared_runs(
	struct dump *d, const struct vma *v, uint64_t end, uint32_t object, struct err *e)
{
	struct memory_source *source = memory_source_new(d, v, v->start - v->offset);
	size_t known = buf_count(d->shared_runs, struct block_run);
	struct present_run all = {v->start, end};
	cleanup_buf struct buf runs = {0};

	clip_to_part(d, v, object, &all);
	if (all.start >= all.end)
		return 0;
	if (find_pages(d, v, &all, &runs, e))
		return -1;
	for (size_t i = 0; i < buf_count(&runs, struct present_run); i++) {
		const struct present_run *run = buf_at(&runs, struct present_run, i);

		add_shared_part(d, source, run->start - v->start + v->offset,
			run->end - v->start + v->offset, object, known);
	}
	return 0;
}

static int dump_segment(
	struct dump *d, const struct vma *v, struct image_region *r, struct err *e)
{
	bool need_memory;
	int object = sysv_dump_mapping(d->fds, d->process, v, &need_memory, e);

	if (object < 0)
		return -1;
	r->kind = IMAGE_REGION_SYSV;
	r->object = object;
	image_writer_range(d->writer, v->start, v->end, private_pages_segment_flags(v), false);
	private_pages_add_region(d, r);
	return need_memory ? add_shared_runs(d, v, v->end, object, e) : 0;
}

/* A mapping may extend beyond the end of what is mapped. */
static int dump_shared_memory(
	struct dump *d, const struct vma *v, uint32_t object, struct err *e)
{
	uint64_t end =
		v->flags & VMA_HUGETLB ? v->end : present_end(d->process, v->start, v->end);

	fd_dump_mapped(d->fds, d->process, v, end, object);
	return add_shared_runs(d, v, end, object, e);
}

static int dump_shared(
	struct dump *d, const struct vma *v, struct image_region *r, struct err *e)
{
	bool need_memory = false, deleted;
	struct stat st;
	int object;

	object = fd_dump_mapping(d->fds, d->process->task, v, &need_memory, e);
	if (object < 0)
		return -1;
	image_writer_range(d->writer, v->start, v->end, private_pages_segment_flags(v), false);
	if (object) {
		r->kind =
			strcmp(v->name, URING_LINK) ? IMAGE_REGION_SHARED : IMAGE_REGION_URING;
		r->object = object;
		private_pages_add_region(d, r);
		return need_memory ? dump_shared_memory(d, v, object, e) : 0;
	}
	if (stat(v->name, &st) || !S_ISREG(st.st_mode))
		return refuse_mapping(
			d, v, "is a shared mapping of something other than a regular file", e);
	r->kind = IMAGE_REGION_SHARED_FILE;
	if (find_module(d, v, false, &r->module, &deleted, e))
		return -1;
	if (r->max_prot & PROT_WRITE)
		fd_saved_dump_mapped(d->fds, v);
	private_pages_add_region(d, r);
	return 0;
}

static int dump_context(
	struct dump *d, const struct vma *v, struct image_region *r, struct err *e)
{
	if (dump_aio(d, v, r, e))
		return -1;
	private_pages_add_region(d, r);
	memory_source_run(d, memory_source_own(d, v, false), v->start, v->end, false, false);
	image_writer_range(d->writer, v->start, v->end, private_pages_segment_flags(v), true);
	return 0;
}

static int dump_kernel_pages(struct dump *d, const struct vma *v, struct image_region *r)
{
	r->kind = strcmp(v->name, "[vdso]") ? IMAGE_REGION_VVAR : IMAGE_REGION_VDSO;
	private_pages_add_region(d, r);
	return 0;
}

/* Where a userfaultfd that is not ours watches pages, watch_pages() has left d->dirty out. */
static bool is_watched_by_us(const struct dump *d, const struct vma *v)
{
	return d->dirty && v->flags & VMA_UFFD_WP && !(v->flags & VMA_UFFD);
}

static int dump_region(struct dump *d, int pagemap, const struct vma *v, struct err *e)
{
	struct image_region r = new_region(d, v);
	bool huge_file;
	int lower;

	if (!strcmp(v->name, "[vsyscall]") || anchor_is(v))
		return 0;
	lower = lower_has_memory(d->process, v, e);
	if (lower > 0 && sysv_is_segment(v))
		sysv_leave_out(d->fds, v);
	if (lower)
		return lower < 0 ? -1 : 0;
	if (!strncmp(v->name, "[vvar", 5) || !strcmp(v->name, "[vdso]"))
		return dump_kernel_pages(d, v, &r);
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (v->flags & refusals[i].vma && !is_watched_by_us(d, v))
			return refuse_mapping(d, v, refusals[i].what, e);
	/* The kernel itself uses one for memory that may only be executed. */
	if (v->protection_key && v->prot != PROT_EXEC)
		return refuse_mapping(d, v, "has a protection key", e);
	if (v->end > LOADER_ADDRESS_END)
		return refuse_mapping(d, v, "lies beyond 47 bits", e);
	if (v->start < LOADER_RANGE + LOADER_RANGE_SIZE && v->end > LOADER_RANGE)
		return refuse_mapping(
			d, v, "lies in the address range that trecr reserves for itself", e);
	if (sysv_is_segment(v))
		return dump_segment(d, v, &r, e);
	if (dump_is_aio(v))
		return dump_context(d, v, &r, e);
	if (v->shared)
		return dump_shared(d, v, &r, e);
	/* Huge pages without a file have a name all the same. */
	huge_file = v->flags & VMA_HUGETLB && strncmp(v->name, "/anon_hugepage", 14);
	if (huge_file && !strstr(v->name, " (deleted)"))
		return dump_whole(d, v, &r, e);
	if (lower_refuse_driver(d->process, v, e))
		return -1;
	if (huge_file || (v->name[0] == '/' && !(v->flags & VMA_HUGETLB)))
		return dump_private_file(d, pagemap, v, &r, e);
	r.kind = IMAGE_REGION_ANON;
	/* The kernel may take its contents at any time; and what the vdso's getrandom keeps
	 * there must not come twice. */
	if (v->flags & VMA_DROPPABLE) {
		private_pages_add_region(d, &r);
		return 0;
	}
	return private_pages_dump(d, pagemap, v, &r, e);
}

/* Memory of GPUs is at addresses of the same space that the program's own has. */
static void dump_device(struct dump *d, const struct device_range *range)
{
	struct device_source *source = device_source_new(d->process, range);
	struct image_region r = {
		.start = range->start,
		.end = range->end,
		.page_size = IMAGE_BLOCK,
		.prot = PROT_READ | PROT_WRITE,
		.max_prot = PROT_READ | PROT_WRITE,
		.tag = IMAGE_TAG_GPU,
		.kind = IMAGE_REGION_DEVICE,
		.object = range->device,
		.name = image_writer_string(d->writer, "[gpu]"),
	};
	struct block_run run = {
		.address = range->start,
		.size = range->end - range->start,
		.read = device_source_read,
		.context = source,
	};

	if (device_source_has_hashes(source)) {
		run.hash = device_source_hash;
		run.expect = device_source_expect;
	}
	buf_push(&d->contexts, void *, (void *)&source);
	buf_push(run.hash ? &d->device_runs : &d->runs, struct block_run, &run);
	d->memory_bytes += run.size;
	private_pages_add_region(d, &r);
	image_writer_range(d->writer, r.start, r.end, PF_R | PF_W, true);
}

/* Those below @address, from number *next on: regions come in the order of their addresses. */
static void dump_devices(struct dump *d, uint64_t address, size_t *next)
{
	for (; *next < buf_count(&d->device, struct device_range); ++*next) {
		const struct device_range *r = buf_at(&d->device, struct device_range, *next);

		if (r->start >= address)
			return;
		dump_device(d, r);
	}
}

/* Contents of CUDA arrays get addresses in the image where nothing is mapped, but what the program
 * maps there by address. */
static int check_arrays(const struct dump *d, struct err *e)
{
	for (size_t i = 0; i < buf_count(&d->device, struct device_range); i++) {
		const struct device_range *r = buf_at(&d->device, struct device_range, i);

		for (size_t k = 0; in_arrays_window(r->start) && k < d->vmas.count; k++) {
			const struct vma *v = &d->vmas.v[k];

			if (v->start < r->end && v->end > r->start)
				return err_set(e, 0,
					"process %d has mapped memory at %#lx, an address at "
					"which the image holds the contents of its CUDA arrays "
					"(they take those from %#lx on)",
					d->process->pid, (unsigned long)v->start,
					(unsigned long)ARRAYS_WINDOW);
		}
	}
	return 0;
}

static int find_devices(struct dump *d, struct err *e)
{
	if (lower_device_ranges(d->process, &d->device, e))
		return -1;
	return d->device.len ? staging_map(d->process, e) : 0;
}

/* Whether all regions that userfaultfd watches are watched by us; and whether there is nothing
 * that writes behind the page table, as asynchronous I/O does. */
static bool can_watch(struct dump *d, const struct dirty *dirty, bool *others)
{
	bool can = dirty;

	*others = false;
	for (size_t i = 0; i < d->vmas.count; i++) {
		const struct vma *v = &d->vmas.v[i];

		can &= !dump_is_aio(v);
		*others |= v->flags & (VMA_UFFD | VMA_UFFD_WP) &&
			   !(dirty && dirty_watches(dirty, v));
	}
	return can;
}

/* Find out what is known of its pages. Marks of ours may be in memory that is not any more that
 * of the process that they were made for (a sibling that shares it has stayed): then all are
 * taken back, and what is left is others'. */
static int watch_pages(struct dump *d, struct err *e)
{
	struct dirty *dirty = NULL;
	bool others;

	if (d->dirty && d->alone)
		dirty = dirty_watch(d->dirty, d->process);
	if (maps_ahead_take(d->maps_ahead, d->number, d->process->task, &d->vmas, e))
		return -1;
	if (!d->dirty)
		return 0;
	if (can_watch(d, dirty, &others) && !others) {
		d->knows_clean = d->parent_id && dirty_is_since(dirty, d->parent_id);
		return 0;
	}
	if (others)
		dirty_end(d->dirty);
	else
		dirty_drop(d->dirty, d->process);
	d->dirty = NULL;
	vma_list_free(&d->vmas);
	return procfs_vmas(d->process->task, &d->vmas, e);
}

void dump_protect(struct dump *d)
{
	struct dirty *dirty = d->watched.len ? dirty_watch(d->dirty, d->process) : NULL;
	cleanup_fd int pagemap = dirty ? pagemap_open(d->process->task, NULL) : -1;

	for (size_t i = 0; pagemap >= 0 && i < buf_count(&d->watched, struct vma); i++)
		dirty_protect(dirty, pagemap, buf_at(&d->watched, struct vma, i));
}

/* What may be under way of asynchronous I/O is searched for in the memory as it is now. */
static bool has_aio(const struct dump *d)
{
	for (size_t i = 0; i < d->vmas.count; i++)
		if (dump_is_aio(&d->vmas.v[i]))
			return true;
	return false;
}

/* Those of the lower half's memory, and of what it has unmapped since, are left out. */
static void write_policies(struct dump *d)
{
	for (size_t i = 0; i < buf_count(&d->policies, struct image_mempolicy); i++) {
		const struct image_mempolicy *m =
			buf_at(&d->policies, struct image_mempolicy, i);

		if (private_pages_has_region(d, m->start, m->end))
			image_writer_note(d->writer, IMAGE_NOTE_MEMPOLICIES, m, sizeof(*m));
	}
}

int dump_memory(struct dump *d, struct err *e)
{
	cleanup_fd int pagemap = pagemap_open(d->process->task, e);
	size_t next = 0;

	if (pagemap < 0 || lower_read_parts(d->process, e) || find_devices(d, e) ||
		watch_pages(d, e) || check_arrays(d, e))
		return -1;
	d->may_wait = d->may_wait && !has_aio(d);
	for (size_t i = 0; i < d->vmas.count; i++) {
		dump_devices(d, d->vmas.v[i].start, &next);
		if (dump_region(d, pagemap, &d->vmas.v[i], e))
			return -1;
	}
	dump_devices(d, UINT64_MAX, &next);
	write_policies(d);
	if (dump_aio_polls(d, e))
		return err_prefix(e, "process %d (%s)", d->process->pid, d->process->comm);
	core_note_files(d);
	image_writer_note(
		d->writer, IMAGE_NOTE_MODULES, d->modules_used.data, d->modules_used.len);
	return 0;
}
