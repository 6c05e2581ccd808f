/*
 * The notes of an ordinary core file, as the kernel writes them (fs/binfmt_elf.c).
 */
#include "supervisor/state/core_notes.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/procfs.h>

void core_note_process(struct dump *d, const char *status, const char *args, size_t args_size)
{
	struct elf_prpsinfo info = {0};
	size_t n =
		args_size < sizeof(info.pr_psargs) - 1 ? args_size : sizeof(info.pr_psargs) - 1;

	info.pr_sname = 'R';
	info.pr_pid = d->process->vpid;
	info.pr_ppid = status_number(status, "PPid", 10);
	info.pr_pgrp = status_last_number(status, "NSpgid");
	info.pr_sid = status_last_number(status, "NSsid");
	info.pr_uid = status_number(status, "Uid", 10);
	info.pr_gid = status_number(status, "Gid", 10);
	memcpy(info.pr_fname, d->process->comm, sizeof(info.pr_fname) - 1);
	memcpy(info.pr_psargs, args, n);
	for (size_t i = 0; i + 1 < n; i++)
		if (!info.pr_psargs[i])
			info.pr_psargs[i] = ' ';
	image_writer_core_note(d->writer, "CORE", NT_PRPSINFO, &info, sizeof(info));
}

static void write_thread(struct image_writer *w, const struct image_thread *t,
	const void *xstate, size_t xstate_size, int signal, const siginfo_t *info)
{
	struct elf_prstatus status = {0};

	status.pr_cursig = signal;
	status.pr_info.si_signo = signal;
	status.pr_pid = t->tid;
	status.pr_sighold = t->sigmask;
	status.pr_fpvalid = 1;
	_Static_assert(sizeof(status.pr_reg) == sizeof(t->regs), "registers");
	memcpy(&status.pr_reg, t->regs, sizeof(status.pr_reg));
	image_writer_core_note(w, "CORE", NT_PRSTATUS, &status, sizeof(status));
	image_writer_core_note(w, "CORE", NT_SIGINFO, info, sizeof(*info));
	/* An XSAVE area begins with what FXSAVE writes. */
	image_writer_core_note(
		w, "CORE", NT_FPREGSET, xstate, sizeof(struct user_fpregs_struct));
	image_writer_core_note(w, "LINUX", NT_X86_XSTATE, xstate, xstate_size);
}

void core_note_thread(struct dump *d, const struct image_thread *t, const void *xstate,
	size_t xstate_size, int signal, const siginfo_t *info)
{
	write_thread(d->writer, t, xstate, xstate_size, signal, info);
	if (d->memory_writer)
		write_thread(d->memory_writer, t, xstate, xstate_size, signal, info);
}

static bool in_file_note(const struct vma *v)
{
	return v->name[0] == '/' && !strstr(v->name, " (deleted)");
}

/* NT_FILE: count, page size, {start, end, file offset in pages}..., names. */
void core_note_files(struct dump *d)
{
	cleanup_buf struct buf head = {0}, names = {0};
	uint64_t count = 0, page_size = IMAGE_BLOCK;

	for (size_t i = 0; i < d->vmas.count; i++)
		count += in_file_note(&d->vmas.v[i]);
	buf_add(&head, &count, sizeof(count));
	buf_add(&head, &page_size, sizeof(page_size));
	for (size_t i = 0; i < d->vmas.count; i++) {
		const struct vma *v = &d->vmas.v[i];
		uint64_t entry[3] = {v->start, v->end, v->offset / page_size};

		if (!in_file_note(v))
			continue;
		buf_add(&head, entry, sizeof(entry));
		buf_add(&names, v->name, strlen(v->name) + 1);
	}
	buf_add(&head, names.data, names.len);
	image_writer_core_note(d->writer, "CORE", NT_FILE, head.data, head.len);
}
