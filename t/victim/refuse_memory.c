/* Memory that a checkpoint refuses. */
#include <linux/userfaultfd.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/shm.h>

#include "refuse.h"

static void secret_memory(void)
{
	fd = syscall(447 /* memfd_secret */, 0);
	need(fd >= 0, "no memfd_secret here");
}

/* In which system calls are run in it. */
static void no_vdso(void)
{
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);

	/* It goes as a whole only. */
	need(vdso && !munmap(vdso, 8192), "no vdso of two pages here");
}

static void sealed(void)
{
	p = victim_anon(4096);
	need(!syscall(462 /* mseal */, p, 4096, 0), "no mseal here");
}

/* Where a restart has its own code. */
static void reserved_address(void)
{
	p = mmap((void *)0x480000100000, 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(p == (void *)0x480000100000, "the address is not available");
}

static void userfault(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	fd = syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
	need(fd >= 0 && !ioctl(fd, UFFDIO_API, &api), "no userfaultfd");
	p = victim_anon(64 * KIB);
	reg.range.start = (unsigned long)p;
	reg.range.len = 64 * KIB;
	need(!ioctl(fd, UFFDIO_REGISTER, &reg), "userfaultfd does not register");
}

static void still_userfault(void)
{
	CHECK(victim_vmflag(p, "um"), "no longer registered");
}

static void device(void)
{
	static const char *const names[] = {
		"/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0", "/dev/mem"};
	int d = -1;

	p = MAP_FAILED;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && p == MAP_FAILED; i++) {
		d = open(names[i], O_RDONLY | O_CLOEXEC);
		if (d < 0)
			continue;
		p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, d, 0);
		close(d);
	}
	need(p != MAP_FAILED, "no device that can be mapped");
}

static void still_mapped(void)
{
	struct victim_vma v;

	CHECK(victim_vma(p, &v) && strstr(v.prot, "s"), "the mapping is %s", v.path);
}

static void still_mapped_privately(void)
{
	struct victim_vma v;

	CHECK(victim_vma(p, &v) && strstr(v.prot, "rw-p"), "the mapping is %s", v.path);
}

/* One page of a context of asynchronous I/O has been mapped over. */
static void aio_cut(void)
{
	unsigned long context = 0;

	need(!syscall(SYS_io_setup, 2000, &context), "no asynchronous I/O");
	MUST(mmap((void *)context, 4096, PROT_READ | PROT_WRITE,
		     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == (void *)context);
}

static int shm_id;

static void sysv_shm(void)
{
	int id = shm_id = shmget(IPC_PRIVATE, 64 * KIB, 0600);

	need(id >= 0, "no System V shared memory");
	p = shmat(id, NULL, 0);
	MUST(p != (void *)-1);
	victim_say("segment %d", id);
	victim_fill(p, 64 * KIB, 3);
}

static void still_shm(void)
{
	struct shmid_ds d;

	SAME(p, 64 * KIB, 3, "System V shared memory");
	(void)d;
	CHECK(!shmdt(p), "%s", strerror(errno));
	shmctl(shm_id, IPC_RMID, NULL);
}

static const struct kind kinds[] = {
	{"secret-memory", secret_memory, nothing, 'd'},
	{"no-vdso", no_vdso, nothing, '-'},
	{"sealed", sealed, nothing, 'r'},
	{"reserved-address", reserved_address, still_mapped_privately, 'r'},
	{"userfaultfd", userfault, still_userfault, 'd'},
	{"aio-cut", aio_cut, nothing, '-'},
	{"device", device, still_mapped, 'r'},
	{"sysv-shm", sysv_shm, still_shm, 'r'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
