/*
 * The lower half of this process: brought up at the first call, once; its libraries; and what
 * becomes of it in children.
 *
 * A child of fork(2) has the window's memory but none of its threads. Whether the program has
 * used the driver decides: if so, calls give the driver's own error for this; if not (it only
 * asked for the version, say), the child gets a lower half of its own. fork, vfork's absence of
 * a copy, and a bare clone(2) are told apart by a page that the kernel wipes in children.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bringup/core.h"
#include "bringup/start.h"
#include "shared/raw.h"
#include "shared/records.h"
#include "shared/address_windows.h"
#include "stubs/crossing/internal.h"

HIDDEN void *crossing_call_upper;

static struct process *process;
static int has_been_up; /* here or in an ancestor */
static int used;        /* crossing_used() was called, here or in an ancestor */
static int failed;      /* bringing up has failed: not tried again */
static struct crossing_library *libraries;

HIDDEN struct process *process_get(void)
{
	struct process *p = __atomic_load_n(&process, __ATOMIC_ACQUIRE);
	long page;

	if (p)
		return p;
	page = raw(
		SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw_failed(page) || raw_failed(raw(SYS_madvise, page, 4096, MADV_WIPEONFORK))) {
		raw_complain("no memory that a child of fork does not get (kernel 4.14)");
		_exit(125);
	}
	if (__atomic_compare_exchange_n(&process, &p, (struct process *)page, 0,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return (struct process *)page;
	raw(SYS_munmap, page, 4096); /* another thread was faster */
	return p;
}

void crossing_used(void)
{
	/* A child of fork decides by what its parent did, so it must have looked before. */
	uint64_t mask = busy_begin();

	if (!process_bring_up())
		used = 1;
	busy_end(mask);
}

/* ---- where our files are ---- */

/* Folder of libtrecr-crossing.so; $TRECR_LIBDIR goes first (a static program has no such). */
static void find_folder(char folder[PATH_MAX])
{
	const char *given = getenv("TRECR_LIBDIR");
	Dl_info info;
	char *slash;

	*folder = 0;
	if (given) {
		snprintf(folder, PATH_MAX, "%s", given);
	} else if (dladdr((void *)crossing_used, &info) && info.dli_fname) {
		snprintf(folder, PATH_MAX, "%s", info.dli_fname);
		slash = strrchr(folder, '/');
		if (slash)
			*slash = 0;
	}
}

/*
 * Where the lower half's ld.so looks first: where the program's does, but not in our folder,
 * where the stubs are. The caller frees it.
 */
static char *library_path(const char *folder)
{
	const char *given = getenv("TRECR_LOWER_LIBRARY_PATH"),
		   *path = getenv("LD_LIBRARY_PATH");
	char *copy, *out, *end, *rest, *one;

	if (given || !path)
		return given ? strdup(given) : NULL;
	copy = strdup(path);
	end = out = calloc(1, strlen(path) + 2);
	rest = copy;
	while (copy && out && (one = strsep(&rest, ":"))) {
		if (!strncmp(one, folder, strlen(folder)))
			continue;
		if (end > out)
			*end++ = ':';
		end = stpcpy(end, one);
	}
	free(copy);
	return out;
}

/* ---- bringing up ---- */

static void report_failed_start(const char *step, int r)
{
	char text[512];
	int n = snprintf(
		text, sizeof(text), "trecr: no lower half: %s: %s\n", step, strerror(-r));

	(void)!write(2, text, n); /* nowhere else to say so */
}

static long (*print_thunk)(const char *text, size_t size);
static void (*exit_thunk)(int status);

/* The next of the program's variables: what a restart's launcher gave is not the program's to say. */
static char *const *skip_given(char *const *variables)
{
	while (variables && *variables && restart_gave_variable(*variables))
		variables++;
	return variables;
}

static size_t count_variables(char *const *variables)
{
	size_t count = 0;

	while (variables && variables[count])
		count++;
	return count;
}

static int remember_environment(void)
{
	char *const *then = RECORDS->start.environment;
	char **copy = records_alloc(
		(count_variables(environ) + count_variables(then) + 1) * sizeof(*copy));
	size_t count = 0;

	if (!copy)
		return -1;
	for (char *const *v = skip_given(environ); v && *v; v = skip_given(v + 1)) {
		copy[count] = records_string(*v);
		if (!copy[count++])
			return -1;
	}
	for (; then && *then; then++)
		if (restart_gave_variable(*then))
			copy[count++] = *then;
	copy[count] = NULL;
	RECORDS->start.environment = copy;
	return 0;
}

static int environment_has_changed(void)
{
	char *const *then = skip_given(RECORDS->start.environment), *const *now =
									    skip_given(environ);

	if (!now)
		return *then != NULL;
	while (*then && *now && !strcmp(*then, *now)) {
		then = skip_given(then + 1);
		now = skip_given(now + 1);
	}
	return *then || *now;
}

/* Old variables stay: libraries may have kept what they were told. */
void crossing_environment(void)
{
	struct process *p = process_get();
	uint64_t mask;

	if (!__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE) || !environment_has_changed())
		return;
	mask = busy_begin();
	if (remember_environment() < 0 ||
		process_request(p->table, LOWER_ENVIRONMENT, NULL, NULL) < 0)
		raw_complain("no memory for the environment: the driver sees an older one");
	busy_end(mask);
}

void crossing_connection(void)
{
	struct process *p = process_get();
	uint64_t mask;

	if (!__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE))
		return;
	mask = busy_begin();
	if (process_request(p->table, LOWER_CONNECTION, NULL, NULL) < 0)
		raw_complain("no memory for the connection to the launcher");
	busy_end(mask);
}

void crossing_exit(void)
{
	struct process *p = process_get();
	uint64_t mask;

	if (!__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE))
		return;
	mask = busy_begin();
	(void)process_request(
		p->table, LOWER_EXIT, NULL, NULL); /* there is nothing else to do */
	busy_end(mask);
}

static int ask_once(struct process *p, const char *question)
{
	uint64_t mask = busy_begin();
	int r;

	raw_copy(p->table->question, question, raw_length(question) + 1);
	r = process_request(p->table, LOWER_ASK, NULL, NULL);
	busy_end(mask);
	return r;
}

/* First at short intervals: mostly it is known at once, or in a few milliseconds. Meanwhile signals are served. */
int crossing_ask_supervisor(const char *question)
{
	enum { LONGEST_NS = 64 * 1000 * 1000 };
	struct process *p = process_get();
	struct timespec pause = {.tv_nsec = 1000 * 1000};
	int r;

	if (!__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE))
		return -1;
	while ((r = ask_once(p, question)) == -EAGAIN) {
		raw(SYS_nanosleep, &pause, NULL);
		pause.tv_nsec *= pause.tv_nsec < LONGEST_NS ? 2 : 1;
	}
	return r == -EPERM ? 1 : r ? -1 : 0;
}

int crossing_share(const uint8_t name[SHARE_NAME])
{
	struct process *p = process_get();
	uint64_t mask;
	int r;

	if (!__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE))
		return -1;
	mask = busy_begin();
	raw_copy(p->table->share_name, name, SHARE_NAME);
	r = process_request(p->table, LOWER_SHARE, NULL, NULL);
	busy_end(mask);
	return r;
}

/* One at a time, as there is one place in the table. */
int crossing_fetch(const struct share_request *request, struct share_reply *reply, int *fd)
{
	static uint32_t lock;
	struct process *p = process_get();
	uint64_t mask;
	int r;

	if (!__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE))
		return -1;
	mask = busy_begin();
	raw_lock(&lock);
	p->table->share_request = *request;
	r = process_request(p->table, LOWER_FETCH, NULL, NULL);
	*reply = p->table->share_reply;
	*fd = p->table->share_fd;
	raw_unlock(&lock);
	busy_end(mask);
	return r;
}

/* What restart() will need, too: the program may change its environment and move its files. */
static int remember_start(void)
{
	char folder[PATH_MAX], core[PATH_MAX + 32], runtime[PATH_MAX + 32];
	struct records_start *s = &RECORDS->start;
	char *path;

	find_folder(folder);
	snprintf(core, sizeof(core), "%s/trecr-lower-core", folder);
	snprintf(runtime, sizeof(runtime), "%s/trecr-lower", folder);
	path = library_path(folder);
	s->core = records_string(core);
	s->runtime = records_string(runtime);
	s->ldso = records_string(getenv("TRECR_LOWER_LDSO"));
	s->library_path = records_string(path);
	free(path);
	return s->core && s->runtime && !remember_environment() && !restart_give_environment()
		       ? 0
		       : -1;
}

/* How threads are stopped: before the first of them can come into the lower half. */
static void describe_crossing(void)
{
	RECORDS->info = (struct crossing_info){
		.trap = (uintptr_t)crossing_trap,
		.trapped = (uintptr_t)crossing_trapped,
		.busy_offset = (char *)&crossing_busy - (char *)raw_read_fs(),
		.current_offset = (char *)&crossing_current - (char *)raw_read_fs(),
		.self_offset = offsetof(struct crossing_thread, self),
		.top_offset = offsetof(struct crossing_thread, top),
		.entries_offset = offsetof(struct crossing_thread, entries),
		.original_offset = offsetof(struct crossing_thread, original),
		.return_offset = offsetof(struct crossing_entry, return_address),
		.rsp_offset = offsetof(struct crossing_entry, rsp),
		.entry_size = sizeof(struct crossing_entry),
		.depth = CROSSING_DEPTH,
		.restart = (uintptr_t)crossing_restart,
		.print = (uintptr_t)crossing_print,
	};
}

HIDDEN int process_start_lower(struct process *p, int fd_base, const char **step)
{
	const struct records_start *s = &RECORDS->start;
	int r = lower_start(&(struct lower_start){.core = s->core,
				    .runtime = s->runtime,
				    .ldso = s->ldso,
				    .library_path = s->library_path,
				    .environment = s->environment,
				    .fd_base = fd_base},
		&p->table, step);

	if (r < 0)
		return r;
	crossing_upper_slot_offset = RECORDS->info.slot_offset = p->table->upper_slot_offset;
	crossing_call_upper = p->table->call_upper;
	p->table->upper_thread_offset = RECORDS->info.current_offset;
	p->table->print = print_thunk;
	p->table->exit = exit_thunk;
	return 0;
}

static int start_failed(void)
{
	__atomic_store_n(&RECORDS->lower, RECORDS_FAILED, __ATOMIC_RELEASE);
	return -1;
}

static int start_lower_half(struct process *p)
{
	const char *step = NULL;
	int r;

	/* First, while there may be one thread only: patching is much faster then. */
	if (signals_take_over() < 0 || records_open() < 0)
		return -1;
	describe_crossing();
	__atomic_store_n(&RECORDS->lower, RECORDS_COMING, __ATOMIC_RELEASE);
	launcher_ask();
	if (remember_start() < 0) {
		raw_complain("no lower half: no memory for records of it");
		return start_failed();
	}
	print_thunk = callbacks_thunk((void *)output_print);
	exit_thunk = callbacks_thunk((void *)exit);
	r = process_start_lower(p, 0, &step);
	if (r < 0) {
		report_failed_start(step, r);
		return start_failed();
	}
	RECORDS_SAVED->fd_base = p->table->fd_base;
	RECORDS_SAVED->space = p->table->space;
	__atomic_store_n(&RECORDS->lower, RECORDS_UP, __ATOMIC_RELEASE);
	return 0;
}

/* The parent's lower half is of no use here; make room, and let libraries be opened anew. */
static void forget_parents(void)
{
	raw(SYS_munmap, LOWER_WINDOW, LOWER_WINDOW_SIZE); /* cannot fail: the range is valid */
	for (struct crossing_library *l = libraries; l; l = l->next)
		__atomic_store_n(l->cross, l->first, __ATOMIC_RELEASE);
	libraries = NULL;
}

/* Under the lock. */
static int bring_up(struct process *p)
{
	if (p->alive)
		return 0;
	if (failed || (has_been_up && used))
		return -1;
	if (has_been_up)
		forget_parents();
	thread_make_key();
	if (start_lower_half(p) < 0) {
		failed = 1;
		return -1;
	}
	has_been_up = 1;
	__atomic_store_n(&p->alive, 1, __ATOMIC_RELEASE);
	return 0;
}

HIDDEN int process_bring_up(void)
{
	struct process *p = process_get();
	int r;

	if (__atomic_load_n(&p->alive, __ATOMIC_ACQUIRE))
		return 0;
	raw_lock(&p->lock);
	r = bring_up(p);
	raw_unlock(&p->lock);
	return r;
}

/* ---- requests ---- */

HIDDEN int process_request(struct lower_table *table, uint32_t request,
	struct lower_library *library, struct lower_parked **parked)
{
	struct process *p = process_get();
	int r;

	raw_lock(&p->request_lock);
	table->library = library;
	__atomic_store_n(&table->request, request, __ATOMIC_RELEASE);
	__atomic_add_fetch(&table->bell, 1, __ATOMIC_RELEASE);
	raw_wake(&table->bell);
	raw_wait(&table->request, request);
	r = table->result;
	if (parked)
		*parked = table->parked;
	__atomic_store_n(&table->request, LOWER_IDLE, __ATOMIC_RELEASE);
	raw_unlock(&p->request_lock);
	return r;
}

/* ---- libraries ---- */

HIDDEN struct crossing_library *process_libraries(void)
{
	return libraries;
}

HIDDEN struct crossing_library *process_find_library(const void *slot)
{
	void **s = (void **)slot;

	for (struct crossing_library *l = libraries; l; l = l->next)
		if ((s >= l->lower.targets && s < l->lower.targets + l->target_count) ||
			((void *const *)s >= l->words && (void *const *)s < l->words_end))
			return l;
	return NULL;
}

HIDDEN int process_open_library(struct crossing_library *library)
{
	struct process *p = process_get();
	int r;

	if (process_bring_up() < 0)
		return -1;
	raw_lock(&p->lock);
	r = 0;
	if (*library->cross == library->first) {
		r = restart_open_library(library, p->table);
		if (r < 0) {
			if (!library->complained++)
				raw_complain(p->table->failure);
		} else {
			library->openmpi = r;
			library->next = libraries;
			libraries = library;
			if (library->opened)
				library->opened();
			if (library->flushes)
				RECORDS->print_cross = library->cross;
			__atomic_store_n(library->cross, crossing, __ATOMIC_RELEASE);
		}
	}
	raw_unlock(&p->lock);
	return r;
}

void crossing_end(struct crossing_library *library, int result)
{
	*library->ended_result = result;
	/* A thread that prints the device's output would put crossing() back. */
	if (library->flushes && RECORDS->print_cross == library->cross)
		__atomic_store_n(&RECORDS->print_cross, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(library->cross, library->ended, __ATOMIC_RELEASE);
	__atomic_store_n(library->guard, library->ended, __ATOMIC_RELEASE);
}

int crossing_within(const struct crossing_library *library, const void *address)
{
	return (uintptr_t)address >= library->lower.start &&
	       (uintptr_t)address < library->lower.end;
}

void crossing_complain(const char *name, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", name, what);
	raw_complain(text);
}
