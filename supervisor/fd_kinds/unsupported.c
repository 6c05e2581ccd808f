/*
 * fd_kinds/unsupported.c - open files of which there is no kind: why they cannot be saved.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/procfs.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd_kinds/inherited_stream.h"

/* What the link of a descriptor that has no row begins with, and what to call it. */
static const struct {
	const char *link, *what;
} refused[] = {
	{"anon_inode:[userfaultfd]", "userfaultfd descriptors are"},
	{"anon_inode:[perf_event]", "perf events are"},
	{"anon_inode:bpf", "BPF objects are"},
	{"anon_inode:[bpf", "BPF objects are"},
	{"anon_inode:seccomp", "seccomp listeners are"},
	{"anon_inode:[landlock", "Landlock rule sets are"},
	{"anon_inode:kvm", "KVM virtual machines are"},
	{"anon_inode:[fscontext]", "file system contexts are"},
	{"anon_inode:[secretmem]", "secret memory (memfd_secret) is"},
	{"/secretmem", "secret memory (memfd_secret) is"},
	{"anon_inode:sync_file", "driver descriptors are"},
	{"anon_inode:", "descriptors of this kind are"},
	{"/dmabuf:", "driver descriptors are"},
	{"/dev/nvidia", "GPUs that were opened past trecr's library are"},
	{"/dev/dri/", "driver descriptors (GPU) are"},
	{"/dev/infiniband/", "driver descriptors (InfiniBand) are"},
	{"/dev/kfd", "driver descriptors (GPU) are"},
	{"/dev/fuse", "FUSE connections are"},
	{"/dev/tty", "terminals other than the standard streams are"},
	{"/dev/console", "terminals other than the standard streams are"},
};

/* In the first field of a line of @mountinfo (proc_pid_mountinfo(5)). */
static bool has_mount(const char *mountinfo, uint64_t mount)
{
	for (const char *line = mountinfo; line && *line;) {
		if (strtoull(line, NULL, 10) == mount)
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* The mount of a root directory that is in the middle of one is not listed. */
static bool is_mount_of_root(pid_t task, uint64_t mount)
{
	cleanup_free char *root = xasprintf("/proc/%d/root", task);
	struct statx st;

	return statx(AT_FDCWD, root, 0, STATX_MNT_ID, &st) || !(st.stx_mask & STATX_MNT_ID) ||
	       st.stx_mnt_id == mount;
}

int fd_refuse_detached(const struct fd_source *s, struct err *e)
{
	cleanup_free char *file = xasprintf("/proc/%d/mountinfo", s->task);
	cleanup_free char *mountinfo = NULL;
	uint64_t mount = status_number(s->info, "mnt_id", 10);
	size_t len;

	if (read_file(file, &mountinfo, &len, NULL) || has_mount(mountinfo, mount) ||
		is_mount_of_root(s->task, mount))
		return 0;
	return err_set(e, 0,
		"it lies on a mount that no path of the process leads to: made by open_tree(2) "
		"or fsmount(2), detached by umount2(2), or of another mount namespace");
}

int fd_unsupported(const struct fd_dump *d, const struct fd_source *s, struct err *e)
{
	if (S_ISBLK(s->st.st_mode))
		return err_set(e, 0, "block devices are not supported");
	if ((S_ISDIR(s->st.st_mode) || S_ISFIFO(s->st.st_mode)) && fd_refuse_detached(s, e))
		return -1;
	if (S_ISDIR(s->st.st_mode))
		return err_set(e, 0,
			"the directory has another name now, or a file system is mounted "
			"over it");
	if (S_ISFIFO(s->st.st_mode))
		return err_set(e, 0,
			"the FIFO has a name that cannot be found, by which others may open "
			"it");
	if (fd_is_left_terminal(d, s))
		return err_set(e, 0,
			"the terminal that it leads to does not control the session of the "
			"process "
			"any more (setsid(2)), and so cannot be opened as /dev/tty again: "
			"duplicate a "
			"standard stream instead (dup(2)), or close it before setsid(2)");
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (!strncmp(s->link, refused[i].link, strlen(refused[i].link)))
			return err_set(e, 0, "%s not supported yet", refused[i].what);
	if (S_ISCHR(s->st.st_mode))
		return err_set(e, 0, "the device %u:%u is not supported", major(s->st.st_rdev),
			minor(s->st.st_rdev));
	return err_set(e, 0, "descriptors of this kind are not supported yet");
}
