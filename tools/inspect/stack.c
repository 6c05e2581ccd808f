/*
 * Stacks of the threads, unwound by libdwfl: registers and memory come from the image, so that
 * incremental ones do as well; names and unwind tables from the mapped files, as long as they
 * still are what the program had mapped. eu-stack --core would do for an image that is complete
 * in itself, but knows neither blocks in other images nor whether a mapped file has changed.
 */
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/user.h>

#include "tools/inspect/contents.h"
#include "tools/inspect/text.h"
#include "tools/inspect/view.h"

/* A damaged stack may lead in circles. */
#define FRAMES_MAX 512

struct frame {
	uint64_t pc, offset; /* offset: in the function */
	char *function;      /* NULL: unknown */
	char *file;          /* source, or the mapped file when line is 0; may be NULL */
	int line;
};

struct unwinder {
	const struct checkpoint *c;
	const struct image *img;
	struct contents *contents;
	const struct image_thread *threads;
	size_t thread_count;
	Elf *core;
	Dwfl *dwfl;
	void *vdso;       /* a copy that libelf may write to */
	struct buf notes; /* char *: what stands in the way */

	struct buf frames; /* struct frame, of the thread at hand */
	void (*show)(const struct unwinder *u, int32_t tid, void *arg);
	void *show_arg;
};

/* ---- modules ---- */

/* What libdwfl knows a module by; the number of a mapped file is put in its user data. */
#define VDSO_MODULE 0u

static Elf *vdso_elf(struct unwinder *u)
{
	const struct image_note_data *note = &u->img->notes[IMAGE_NOTE_VDSO];

	if (!note->data)
		return NULL;
	if (!u->vdso) {
		u->vdso = xmalloc(note->size);
		memcpy(u->vdso, note->data, note->size);
	}
	return elf_memory(u->vdso, note->size);
}

struct module {
	struct unwinder *u;
	uint32_t number;
};

static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
	char **file_name, Elf **elf)
{
	const struct module *module = *userdata;
	struct unwinder *u = module->u;
	struct err why = ERR_INIT;
	const struct image_module *m;
	size_t count;
	int fd;

	if (module->number == VDSO_MODULE) {
		*elf = vdso_elf(u);
		return -1;
	}
	fd = contents_open_module(u->contents, module->number, &why);
	if (fd < 0) {
		char *note = xstrdup(why.msg);

		buf_push(&u->notes, char *, &note);
		return -1;
	}
	m = image_note_array(u->img, IMAGE_NOTE_MODULES, struct image_module, &count);
	*file_name = xstrdup(image_string(u->img, m[module->number - 1].path));
	return fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
};

static void report_module(
	struct unwinder *u, const char *name, uint32_t number, uint64_t start, uint64_t end)
{
	Dwfl_Module *mod = dwfl_report_module(u->dwfl, name, start, end);
	struct module *module;
	void **userdata;

	/* Fails for ranges that no kernel would give: the frames in it have no names then. */
	if (!mod)
		return;
	module = xmalloc(sizeof(*module));
	*module = (struct module){u, number};
	dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = module;
}

static const char *module_path(const struct unwinder *u, uint32_t number)
{
	const struct image_module *m;
	size_t count;

	m = image_note_array(u->img, IMAGE_NOTE_MODULES, struct image_module, &count);
	return image_string(u->img, m[number - 1].path);
}

/* A file is mapped in pieces that follow one another, the first from its beginning. */
static void report_modules(struct unwinder *u)
{
	const struct image_region *r;
	uint64_t start = 0, end = 0;
	uint32_t current = 0;
	size_t count;

	r = contents_regions(u->contents, &count);
	for (size_t i = 0; i < count; i++) {
		if (r[i].kind == IMAGE_REGION_VDSO)
			report_module(u, "[vdso]", VDSO_MODULE, r[i].start, r[i].end);
		if (!r[i].module || r[i].kind == IMAGE_REGION_SHARED_FILE)
			continue;
		if (r[i].module == current && r[i].offset) {
			end = r[i].end;
			continue;
		}
		if (current)
			report_module(u, module_path(u, current), current, start, end);
		current = r[i].offset ? 0 : r[i].module;
		start = r[i].start;
		end = r[i].end;
	}
	if (current)
		report_module(u, module_path(u, current), current, start, end);
}

static int free_module(
	Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base, void *arg)
{
	free(*userdata);
	return DWARF_CB_OK;
}

/* ---- threads ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **position)
{
	const struct unwinder *u = arg;
	const struct image_thread *t = *position;

	t = t ? t + 1 : u->threads;
	/* A leader that has ended has no stack. */
	if (t == u->threads && t->flags & IMAGE_THREAD_ENDED)
		t++;
	if (t == u->threads + u->thread_count)
		return 0;
	*position = (void *)t;
	return t->tid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *arg)
{
	struct unwinder *u = arg;

	/* At the end of a stack such a read is nothing unusual. */
	return contents_read_word(u->contents, address, word, NULL) == 0;
}

static bool set_registers(Dwfl_Thread *thread, void *position)
{
	const struct image_thread *t = position;
	struct user_regs_struct r;

	memcpy(&r, t->regs, sizeof(r));
	/* In the order of the System V ABI for x86-64, figure 3.36. */
	const Dwarf_Word registers[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
		r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};

	return dwfl_thread_state_registers(thread, 0, ARRAY_SIZE(registers), registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

/* ---- frames ---- */

static void name_frame(struct unwinder *u, struct frame *f, bool is_call)
{
	/* A return address may lie behind the function that made the call. */
	Dwarf_Addr look_up = f->pc - (is_call ? 1 : 0);
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, look_up);
	const char *name, *file;
	GElf_Off offset;
	GElf_Sym symbol;
	Dwfl_Line *line;

	if (!mod)
		return;
	name = dwfl_module_addrinfo(mod, look_up, &offset, &symbol, NULL, NULL, NULL);
	if (name) {
		/* Without the symbol's version. */
		f->function = strndup(name, strcspn(name, "@"));
		f->offset = offset + (f->pc - look_up);
	}
	line = dwfl_module_getsrc(mod, look_up);
	file = line ? dwfl_lineinfo(line, NULL, &f->line, NULL, NULL, NULL) : NULL;
	if (!file) {
		f->line = 0;
		file = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	}
	f->file = file ? xstrdup(file) : NULL;
}

static int add_frame(Dwfl_Frame *state, void *arg)
{
	struct unwinder *u = arg;
	struct frame f = {0};
	bool is_activation = false;

	if (buf_count(&u->frames, struct frame) == FRAMES_MAX ||
		!dwfl_frame_pc(state, &f.pc, &is_activation))
		return DWARF_CB_ABORT;
	name_frame(u, &f, !is_activation);
	buf_push(&u->frames, struct frame, &f);
	return DWARF_CB_OK;
}

static int unwind_thread(Dwfl_Thread *thread, void *arg)
{
	struct unwinder *u = arg;

	/* Unwinding mostly ends with an error: where it cannot continue, it is at its end. */
	(void)dwfl_thread_getframes(thread, add_frame, u);
	u->show(u, dwfl_thread_tid(thread), u->show_arg);
	for (size_t i = 0; i < buf_count(&u->frames, struct frame); i++) {
		free(buf_at(&u->frames, struct frame, i)->function);
		free(buf_at(&u->frames, struct frame, i)->file);
	}
	u->frames.len = 0;
	return DWARF_CB_OK;
}

static int prepare_unwinder(struct unwinder *u)
{
	u->core = elf_begin(u->img->fd, ELF_C_READ, NULL);
	u->dwfl = dwfl_begin(&callbacks);
	if (!u->core || !u->dwfl)
		return -1;
	dwfl_report_begin(u->dwfl);
	report_modules(u);
	if (dwfl_report_end(u->dwfl, NULL, NULL))
		return -1;
	/* The file says which machine it is; of its contents libdwfl reads nothing. */
	return dwfl_attach_state(u->dwfl, u->core, u->threads[0].tid, &thread_callbacks, u)
		       ? 0
		       : -1;
}

static void unwind_process(struct unwinder *u, const struct checkpoint *c, size_t process)
{
	u->c = c;
	u->img = c->processes[checkpoint_owner(c, process, IMAGE_SHARED_MEMORY)];
	u->contents = contents_open(c, process);
	u->threads = image_note_array(c->processes[process], IMAGE_NOTE_THREADS,
		struct image_thread, &u->thread_count);
	if (prepare_unwinder(u) < 0 ||
		dwfl_getthreads(u->dwfl, unwind_thread, u) != DWARF_CB_OK) {
		char *note = xasprintf("cannot unwind: %s", dwfl_errmsg(-1));

		buf_push(&u->notes, char *, &note);
	}
}

static void release_unwinder(struct unwinder *u)
{
	if (u->dwfl)
		dwfl_getmodules(u->dwfl, free_module, NULL, 0);
	dwfl_end(u->dwfl);
	elf_end(u->core);
	contents_close(u->contents);
	for (size_t i = 0; i < buf_count(&u->notes, char *); i++)
		free(*buf_at(&u->notes, char *, i));
	buf_free(&u->notes);
	buf_free(&u->frames);
	free(u->vdso);
}

/* ---- views ---- */

static const char *thread_name(const struct unwinder *u, int32_t tid)
{
	for (size_t i = 0; i < u->thread_count; i++)
		if (u->threads[i].tid == tid)
			return (const char *)u->threads[i].comm;
	return "";
}

static void thread_text(const struct unwinder *u, int32_t tid, void *arg)
{
	struct buf *out = arg;

	text_line(out, "  thread %d (%s)", tid, thread_name(u, tid));
	for (size_t i = 0; i < buf_count(&u->frames, struct frame); i++) {
		const struct frame *f = buf_at(&u->frames, struct frame, i);
		cleanup_buf struct buf place = {0};

		if (f->function)
			buf_printf(&place, "%s+%#" PRIx64, f->function, f->offset);
		else
			buf_printf(&place, "?");
		if (f->file)
			buf_printf(&place, " %s", f->file);
		if (f->line)
			buf_printf(&place, ":%d", f->line);
		text_line(out, "  #%-3zu %#018" PRIx64 " %s", i, f->pc, text_of(&place));
	}
}

static void show_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	struct unwinder u = {.show = thread_text, .show_arg = out};

	unwind_process(&u, c, process);
	for (size_t i = 0; i < buf_count(&u.notes, char *); i++)
		text_line(out, "  %s", *buf_at(&u.notes, char *, i));
	release_unwinder(&u);
}

static void thread_json(const struct unwinder *u, int32_t tid, void *arg)
{
	struct json *j = arg;

	json_object(j, NULL);
	json_integer(j, "tid", tid);
	json_array(j, "frames");
	for (size_t i = 0; i < buf_count(&u->frames, struct frame); i++) {
		const struct frame *f = buf_at(&u->frames, struct frame, i);
		char pc[TEXT_SIZE];

		snprintf(pc, sizeof(pc), "%#" PRIx64, f->pc);
		json_object(j, NULL);
		json_text(j, "pc", pc);
		json_text(j, "function", f->function);
		json_number(j, "offset", f->offset);
		json_text(j, "file", f->file);
		json_integer(j, "line", f->line);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void show_json(const struct checkpoint *c, size_t process, struct json *j)
{
	struct unwinder u = {.show = thread_json, .show_arg = j};

	json_array(j, "stacks");
	unwind_process(&u, c, process);
	json_end(j);
	json_array(j, "stack_notes");
	for (size_t i = 0; i < buf_count(&u.notes, char *); i++)
		json_text(j, NULL, *buf_at(&u.notes, char *, i));
	json_end(j);
	release_unwinder(&u);
}

const struct view stack_view = {show_text, show_json};
