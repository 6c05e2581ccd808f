/*
 * checkpoint_check.c - the checks, note by note: of the job's file, then of the file of each
 * process.
 */
#include "ckpt/checkpoint_check.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#include "ckpt/image_read_private.h"

/* An index + 1 of something of which there are @count, 0 for none. */
static int check_index(
	const struct image *img, const char *what, uint32_t index, size_t count, struct err *e)
{
	if (index > count)
		return image_bad(img, e, "it names %s %u of %zu", what, index, count);
	return 0;
}

static int check_descriptions(const struct image *job, struct err *e)
{
	size_t objects = image_note_count(job, IMAGE_NOTE_OBJECTS, sizeof(struct image_object)),
	       count;
	const struct image_description *d;

	d = image_note_array(job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	for (size_t i = 0; i < count; i++) {
		if (!d[i].kind || d[i].kind >= IMAGE_FD_KINDS)
			return image_bad(
				job, e, "open file %zu is of unknown kind %u", i, d[i].kind);
		if (check_index(job, "object", d[i].object, objects, e) < 0)
			return -1;
	}
	return 0;
}

static int check_objects(const struct image *job, struct err *e)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++)
		if (!o[i].kind || o[i].kind >= IMAGE_OBJECT_KINDS || o[i].size > INT64_MAX)
			return image_bad(job, e, "object %zu is of unknown kind %u or size", i,
				o[i].kind);
	return 0;
}

static int check_xattrs(const struct image *job, struct err *e)
{
	size_t bytes = image_note_count(job, IMAGE_NOTE_XATTR_VALUES, sizeof(char)), used = 0,
	       count;
	const struct image_xattr *x;

	x = image_note_array(job, IMAGE_NOTE_XATTRS, struct image_xattr, &count);
	for (size_t i = 0; i < count; i++)
		used += x[i].size;
	return used == bytes
		       ? 0
		       : image_bad(job, e, "its extended attributes have %zu bytes and not %zu",
				 used, bytes);
}

/* @count elements from @first on, of @all. */
static int check_range(const struct image *img, const char *what, uint64_t first,
	uint64_t count, uint64_t all, struct err *e)
{
	if (first > all || count > all - first)
		return image_bad(img, e, "it names %s that it does not have", what);
	return 0;
}

static int check_messages(const struct image *job, struct err *e)
{
	size_t rights = image_note_count(job, IMAGE_NOTE_RIGHTS, sizeof(uint32_t)), count;
	size_t files = image_note_count(
		job, IMAGE_NOTE_DESCRIPTIONS, sizeof(struct image_description));
	const struct image_socket_option *o;
	size_t sockets = image_note_count(job, IMAGE_NOTE_SOCKETS, sizeof(struct image_socket));
	const struct image_message *m;
	const struct image_tcp *t;
	const uint32_t *r;

	m = image_note_array(job, IMAGE_NOTE_MESSAGES, struct image_message, &count);
	for (size_t i = 0; i < count; i++)
		if (check_range(job, "descriptors in messages", m[i].first_right,
			    m[i].right_count, rights, e) < 0 ||
			check_range(
				job, "an address", 0, m[i].name_size, sizeof(m[i].name), e) < 0)
			return -1;
	r = image_note_array(job, IMAGE_NOTE_RIGHTS, uint32_t, &count);
	for (size_t i = 0; i < count; i++)
		if (r[i] >= files)
			return image_bad(
				job, e, "a message holds open file %u of %zu", r[i], files);
	t = image_note_array(job, IMAGE_NOTE_TCP, struct image_tcp, &count);
	for (size_t i = 0; i < count; i++)
		if (!t[i].socket || t[i].socket > sockets)
			return image_bad(
				job, e, "it names socket %u of %zu", t[i].socket, sockets);
	o = image_note_array(
		job, IMAGE_NOTE_SOCKET_OPTIONS, struct image_socket_option, &count);
	for (size_t i = 0; i < count; i++)
		if (check_range(job, "an option", 0, o[i].size, sizeof(o[i].value), e) < 0)
			return -1;
	return 0;
}

static int check_socket(
	const struct image *job, const struct image_socket *s, size_t sockets, struct err *e)
{
	size_t options = image_note_count(
		job, IMAGE_NOTE_SOCKET_OPTIONS, sizeof(struct image_socket_option));
	size_t messages =
		image_note_count(job, IMAGE_NOTE_MESSAGES, sizeof(struct image_message));
	size_t files = image_note_count(
		job, IMAGE_NOTE_DESCRIPTIONS, sizeof(struct image_description));

	if (!s->state || s->state >= IMAGE_SOCKET_STATES || s->description >= files)
		return image_bad(job, e, "a socket is of unknown state %u", s->state);
	if (check_index(job, "socket", s->peer, sockets, e) < 0 ||
		check_index(job, "socket", s->listener, sockets, e) < 0 ||
		check_range(job, "an address", 0, s->name_size, sizeof(s->name), e) < 0 ||
		check_range(job, "an address", 0, s->peer_name_size, sizeof(s->peer_name), e) <
			0)
		return -1;
	return check_range(job, "options", s->first_option, s->option_count, options, e) < 0 ||
			       check_range(job, "messages", s->first_message, s->message_count,
				       messages, e) < 0
		       ? -1
		       : 0;
}

static int check_sockets(const struct image *job, struct err *e)
{
	const struct image_description *d;
	const struct image_socket *s;
	size_t sockets, count;

	s = image_note_array(job, IMAGE_NOTE_SOCKETS, struct image_socket, &sockets);
	for (size_t i = 0; i < sockets; i++)
		if (check_socket(job, &s[i], sockets, e) < 0)
			return -1;
	d = image_note_array(job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	for (size_t i = 0; i < count; i++)
		if (d[i].kind == IMAGE_FD_SOCKET &&
			(!d[i].args[0] || d[i].args[0] > sockets ||
				s[d[i].args[0] - 1].description != i))
			return image_bad(job, e, "open file %zu is not a socket", i);
	return check_messages(job, e);
}

/* Whether process @pid is among the first @count. */
static bool is_listed(const struct image_job_process *list, size_t count, int32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].pid == pid)
			return true;
	return false;
}

/* What a process can be stopped by. */
static bool is_stop(int status)
{
	int signal = WSTOPSIG(status);

	return WIFSTOPPED(status) && (signal == SIGSTOP || signal == SIGTSTP ||
					     signal == SIGTTIN || signal == SIGTTOU);
}

static int check_processes(const struct image *job, const struct image_job_process *list,
	size_t count, struct err *e)
{
	size_t living = 0;

	while (living < count && !(list[living].flags & IMAGE_JOB_PROCESS_ZOMBIE))
		living++;
	for (size_t i = 0; i < count; i++) {
		const struct image_job_process *p = &list[i];

		if (p->pid <= 0 || p->pgid < 0 || p->sid < 0 || is_listed(list, i, p->pid))
			return image_bad(job, e, "it lists a process %d", p->pid);
		if (i >= living && !(p->flags & IMAGE_JOB_PROCESS_ZOMBIE))
			return image_bad(job, e, "its list of processes is out of order");
		if (p->flags & IMAGE_JOB_PROCESS_STOPPED && !is_stop(p->status))
			return image_bad(
				job, e, "process %d was stopped by %#x", p->pid, p->status);
		if (i ? p->ppid && !is_listed(list, i < living ? i : living, p->ppid)
		      : p->ppid || !living)
			return image_bad(job, e, "process %d has no parent", p->pid);
	}
	return 0;
}

/* Things are saved with the first process that has them; and the kernel knows no handlers
 * without the memory that they are in. */
static int check_sharing(const struct image *job, const struct image_job_process *list,
	size_t processes, struct err *e)
{
	const struct image_sharing *s;
	size_t count;

	s = image_note_array(job, IMAGE_NOTE_SHARING, struct image_sharing, &count);
	if (count && count != processes)
		return image_bad(job, e, "its list of what processes share is incomplete");
	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < IMAGE_SHARED_KINDS; k++) {
			uint32_t with = s[i].with[k];

			if (with > i || s[with].with[k] != with ||
				(with != i && list[i].flags & IMAGE_JOB_PROCESS_ZOMBIE))
				return image_bad(job, e,
					"process %d shares something with number %u",
					list[i].pid, with);
		}
		if (s[i].with[IMAGE_SHARED_SIGNALS] != i &&
			s[s[i].with[IMAGE_SHARED_SIGNALS]].with[IMAGE_SHARED_MEMORY] !=
				s[i].with[IMAGE_SHARED_MEMORY])
			return image_bad(
				job, e, "process %d shares actions but no memory", list[i].pid);
		if (s[i].exit_signal > 64)
			return image_bad(job, e, "process %d ends with signal %u", list[i].pid,
				s[i].exit_signal);
	}
	return 0;
}

int checkpoint_check_job(const struct image *job, struct err *e)
{
	const struct image_job_process *list;
	const struct image_job *info;
	size_t count, infos;

	info = image_note_array(job, IMAGE_NOTE_JOB, struct image_job, &infos);
	list = image_note_array(job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	if (!infos || !count || info->process_count != count)
		return image_bad(job, e, "its list of processes is incomplete");
	if (check_processes(job, list, count, e) < 0 ||
		check_sharing(job, list, count, e) < 0 || check_objects(job, e) < 0 ||
		check_xattrs(job, e) < 0)
		return -1;
	return check_descriptions(job, e) < 0 ? -1 : check_sockets(job, e);
}

static int check_threads(const struct image *img, struct err *e)
{
	size_t xstate = image_note_count(img, IMAGE_NOTE_XSTATE, sizeof(uint8_t)), count;
	const struct image_thread *t;

	t = image_note_array(img, IMAGE_NOTE_THREADS, struct image_thread, &count);
	if (!count)
		return image_bad(img, e, "it has no threads");
	for (size_t i = 0; i < count; i++) {
		if (t[i].tid <= 0 || t[i].comm[sizeof(t[i].comm) - 1])
			return image_bad(img, e, "thread %d has a bad id or name", t[i].tid);
		if (i && t[i].flags & IMAGE_THREAD_ENDED)
			return image_bad(img, e, "thread %d has ended", t[i].tid);
		if (t[i].xstate_offset > xstate ||
			t[i].xstate_size > xstate - t[i].xstate_offset)
			return image_bad(img, e, "the registers of thread %d are out of place",
				t[i].tid);
	}
	return 0;
}

static int check_regions(const struct image *img, const struct image *job, struct err *e)
{
	size_t modules = image_note_count(img, IMAGE_NOTE_MODULES, sizeof(struct image_module));
	size_t objects = image_note_count(job, IMAGE_NOTE_OBJECTS, sizeof(struct image_object)),
	       count;
	const struct image_region *r;
	uint64_t end = 0;

	r = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		if (r[i].start < end || r[i].end <= r[i].start ||
			(r[i].start | r[i].end) % IMAGE_BLOCK)
			return image_bad(img, e, "the region at %#" PRIx64 " is out of order",
				r[i].start);
		if (check_index(img, "module", r[i].module, modules, e) < 0 ||
			(r[i].kind != IMAGE_REGION_DEVICE &&
				check_index(img, "object", r[i].object, objects, e) < 0))
			return -1;
		end = r[i].end;
	}
	return 0;
}

static int check_modules(const struct image *img, struct err *e)
{
	const struct image_module *m;
	size_t count;

	m = image_note_array(img, IMAGE_NOTE_MODULES, struct image_module, &count);
	for (size_t i = 0; i < count; i++)
		if (m[i].build_id_size > sizeof(m[i].build_id))
			return image_bad(img, e, "module %zu has a build id of %u bytes", i,
				m[i].build_id_size);
	return 0;
}

static int check_fds(const struct image *img, const struct image *job, struct err *e)
{
	size_t files = image_note_count(
		       job, IMAGE_NOTE_DESCRIPTIONS, sizeof(struct image_description)),
	       count;
	const struct image_thread_fd *own;
	const struct image_fd *f;

	own = image_note_array(img, IMAGE_NOTE_THREAD_FDS, struct image_thread_fd, &count);
	for (size_t i = 0; i < count; i++)
		if (own[i].fd < -1 || (own[i].fd >= 0 && own[i].description >= files) ||
			(i && own[i].tid == own[i - 1].tid && own[i].fd <= own[i - 1].fd))
			return image_bad(img, e, "descriptor %d of thread %d is out of place",
				own[i].fd, own[i].tid);
	f = image_note_array(img, IMAGE_NOTE_FDS, struct image_fd, &count);
	for (size_t i = 0; i < count; i++)
		if (f[i].fd < 0 || f[i].description >= files)
			return image_bad(img, e, "descriptor %d names open file %u of %zu",
				f[i].fd, f[i].description, files);
	return 0;
}

static int check_filters(const struct image *img, struct err *e)
{
	size_t code = image_note_count(img, IMAGE_NOTE_FILTER_CODE, sizeof(uint64_t)), count;
	const struct image_filter *f;

	f = image_note_array(img, IMAGE_NOTE_FILTERS, struct image_filter, &count);
	for (size_t i = 0; i < count; i++)
		if (f[i].count > UINT16_MAX ||
			check_range(img, "filters", f[i].first, f[i].count, code, e) < 0)
			return -1;
	return 0;
}

int checkpoint_check_process(
	const struct image *img, const struct image *job, int32_t pid, struct err *e)
{
	const struct image_process *p;
	size_t count;

	p = image_note_array(img, IMAGE_NOTE_PROCESS, struct image_process, &count);
	if (!count)
		return image_bad(img, e, "it describes no process");
	if (p->pid != pid)
		return image_bad(img, e, "it is of process %d, not %d", p->pid, pid);
	if (check_threads(img, e) < 0 || check_regions(img, job, e) < 0 ||
		check_modules(img, e) < 0 || check_filters(img, e) < 0)
		return -1;
	return check_fds(img, job, e);
}
