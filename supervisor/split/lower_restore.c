/*
 * lower_restore.c - starts the lower half in the new process by a call of a function of the
 * upper one, and has it repeat the calls on record.
 */
#include "supervisor/split/lower_restore.h"

#include <string.h>
#include <time.h>

#include "ckpt/store.h"
#include "lib/notices.h"
#include "supervisor/split/gpu_map.h"
#include "supervisor/split/launcher_restore.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/split/mpi_libraries.h"
#include "supervisor/state/restore_options.h"
#include "supervisor/target/module.h"
#include "supervisor/target/remote_function.h"

/* A driver takes seconds to come up, and as long again for what it is to make. */
#define START_NS  300000000000ull
#define REPLAY_NS 1800000000000ull

static const struct image_module *lower_files(const struct new_process *np, size_t *count)
{
	return image_note_array(np->img, IMAGE_NOTE_LOWER, struct image_module, count);
}

static bool is_mpi_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "libmpi", strlen("libmpi"));
}

static bool is_gpu_library(const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;

	return !strncmp(file, "libcuda", strlen("libcuda")) ||
	       !strncmp(file, "libnvidia", strlen("libnvidia"));
}

static bool may_be_other(const struct new_process *np, const char *path)
{
	return np->o->gpu_other && is_gpu_library(path);
}

/* enum mpi_abi of the MPI library that was in the lower half; 0: there was none. */
static unsigned former_abi(const struct new_process *np)
{
	unsigned abi = MPI_ABI_NONE;
	size_t count;
	const struct image_module *m = lower_files(np, &count);

	for (size_t i = 0; i < count && !abi; i++)
		abi = mpi_abi_of_file(image_string(np->img, m[i].path));
	return abi;
}

bool restore_lower_has_mpi(const struct checkpoint *c)
{
	for (size_t i = 0; i < c->process_count; i++) {
		const struct image *img = c->processes[i];
		const struct image_module *m;
		size_t count;

		m = image_note_array(img, IMAGE_NOTE_LOWER, struct image_module, &count);
		for (size_t k = 0; k < count; k++)
			if (is_mpi_library(image_string(img, m[k].path)))
				return true;
	}
	return false;
}

int restore_lower_check(const struct new_process *np)
{
	const struct image_module *m;
	char names[sizeof(((struct records_launcher *)NULL)->names)];
	unsigned former = former_abi(np);
	bool another = former && mpi_library_choose(np->mpi, former, names, sizeof(names));
	size_t count;

	m = lower_files(np, &count);
	for (size_t i = 0; i < count; i++) {
		const char *path = image_string(np->img, m[i].path);

		/* What another MPI library brings with it is another one's, too. */
		if (another && !is_gpu_library(path))
			continue;
		if (!module_check(&m[i], path, may_be_other(np, path) ? NULL : np->e) ||
			may_be_other(np, path))
			continue;
		return err_prefix(np->e,
			"the program needs the GPU driver or MPI library that it "
			"ran with, and its libraries, unchanged%s",
			is_gpu_library(path)
				? " (--gpu-other allows another build of the driver)"
				: "");
	}
	return 0;
}

/* Whether libraries of the driver are not those of the checkpoint: then it is loaded at another place
 * (crossing_library.another_place). */
static bool has_another_driver(const struct new_process *np)
{
	const struct image_module *m;
	size_t count;

	m = lower_files(np, &count);
	for (size_t i = 0; i < count; i++) {
		const char *path = image_string(np->img, m[i].path);

		if (may_be_other(np, path) && module_check(&m[i], path, NULL))
			return true;
	}
	return false;
}

static int start_lower_half(struct new_process *np)
{
	struct process *p = &np->process;
	char failure[sizeof(RECORDS->failure)];
	uint32_t another = has_another_driver(np);
	int32_t result;

	if (tracee_write(p->mem_fd, RECORDS_LIVE + offsetof(struct records, another_driver),
		    &another, sizeof(another), np->e) ||
		remote_function(p, &p->threads[0], p->lower->info.restart,
			clock_ns(CLOCK_MONOTONIC) + START_NS, np->e) ||
		tracee_read(p->mem_fd, RECORDS_LIVE + offsetof(struct records, result), &result,
			sizeof(result), np->e) ||
		tracee_read(p->mem_fd, RECORDS_LIVE + offsetof(struct records, failure),
			failure, sizeof(failure), np->e))
		return -1;
	failure[sizeof(failure) - 1] = 0;
	return result ? err_set(np->e, 0, "%s", failure) : 0;
}

bool restore_lower_wanted(const struct new_process *np)
{
	size_t count;

	lower_files(np, &count);
	return count;
}

static void tell_notice(void *arg, char *line)
{
	const struct new_process *np = arg;

	if (np->o->notice)
		notice_printf(np->o->notice, "process %d (%s): %s", np->process.vpid,
			np->process.comm, line);
}

static int replay_calls(struct new_process *np, enum lower_request request)
{
	struct process *p = &np->process;
	int failed;

	p->lower->gpu_choice = (np->o->gpu_other ? LOWER_GPU_OTHER : 0) |
			       (np->o->gpu_map ? LOWER_GPU_MAPPED : 0);
	p->lower->look = np->look_at_others;
	p->lower->look_arg = np->others;
	failed = lower_order(p, request, NULL, 0, clock_ns(CLOCK_MONOTONIC) + REPLAY_NS, np->e);
	np->no_room = failed && p->lower->no_room;
	p->lower->look = NULL;
	if (!failed)
		lower_notices(p, tell_notice, np);
	return failed;
}

/* A process may come to call MPI later, and has its former launcher's variables in its environment. */
static int give_variables(struct new_process *np)
{
	struct process *p = &np->process;
	bool launcher = launcher_is_wanted(p) || launcher_may_be_wanted(p);

	return launcher || np->gpu_variable ? launcher_give_variables(p, launcher, np->mpi,
						      former_abi(np), np->gpu_variable, np->e)
					    : 0;
}

int restore_lower_map_gpus(struct new_process *list, size_t count)
{
	const struct restore_options *o = list[0].o;
	cleanup_free struct gpu_map_process *processes = xcalloc(count, sizeof(*processes));

	if (!o->gpu_map || list[0].trial)
		return 0;
	for (size_t i = 0; i < count; i++)
		processes[i] =
			(struct gpu_map_process){&list[i].process, &list[i].gpu_variable};
	return gpu_map_variables(processes, count,
		&(struct gpu_map_options){o->gpu_map, o->others != NULL, o->notice}, list[0].e);
}

int restore_lower_run(struct new_process *np)
{
	struct process *p = &np->process;
	bool mpi;

	if (!restore_lower_wanted(np))
		return np->trial ? 0 : give_variables(np);
	if (lower_find(p, np->e))
		return -1;
	if (!p->lower || p->lower->state != RECORDS_UP)
		return err_set(np->e, 0, "the image lacks the records of the lower half");
	mpi = !np->trial && launcher_is_wanted(p);
	if ((!np->trial && give_variables(np)) || start_lower_half(np) ||
		(mpi && launcher_give_connection(p, np->e)))
		return err_prefix(np->e, "cannot bring back the lower half of process %d (%s)",
			p->vpid, p->comm);
	return replay_calls(np, np->trial ? LOWER_TRY : LOWER_REPLAY);
}

int restore_lower_rest(struct new_process *np)
{
	if (!restore_lower_wanted(np) || np->trial)
		return 0;
	return replay_calls(np, LOWER_REPLAY_REST) ? -1 : restore_device_memory(np);
}
