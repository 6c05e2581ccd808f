/* Memory files: one mapped twice with its descriptor open, one whose descriptor is closed,
 * one that is not mapped, one with seals, two that were sealed when they had been mapped. */
#include "victim.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define LATE_SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static char *a, *b, *closed;
static char *late, *later; /* sealed since; the descriptor of the second one is closed */
static int late_fd;

void victim_hurt(void)
{
	mmap(b, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		0);
}

static int make_memfd(const char *name, size_t size, uint64_t seed, unsigned flags)
{
	int fd = memfd_create(name, flags);
	char *data = malloc(size);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, flags & ~MFD_NOEXEC_SEAL);

	MUST(fd >= 0 && data);
	victim_fill(data, size, seed);
	MUST(write(fd, data, size) == (ssize_t)size);
	free(data);
	return fd;
}

static char *make_sealed_since(const char *name, uint64_t seed, int *fd)
{
	char *p;

	*fd = make_memfd(name, 64 * KIB, seed, MFD_ALLOW_SEALING);
	p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	MUST(p != MAP_FAILED && !fcntl(*fd, F_ADD_SEALS, LATE_SEALS));
	return p;
}

/* Only what was mapped before may be written to. */
static void check_sealed_since(void)
{
	char *reader = mmap(NULL, 64 * KIB, PROT_READ, MAP_SHARED, late_fd, 0);

	SAME(late, 64 * KIB, 6, "memory that was sealed later");
	SAME(later, 64 * KIB, 7, "memory that was sealed later, without descriptor");
	CHECK(fcntl(late_fd, F_GET_SEALS) == LATE_SEALS, "seals are %x",
		fcntl(late_fd, F_GET_SEALS));
	CHECK(write(late_fd, "x", 1) < 0 && errno == EPERM, "sealed file was written");
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, late_fd, 0) == MAP_FAILED &&
			errno == EPERM,
		"it can be mapped to be written to");
	CHECK(reader != MAP_FAILED, "it cannot be mapped to be read: %s", strerror(errno));
	CHECK(reader == MAP_FAILED || mprotect(reader, 4096, PROT_READ | PROT_WRITE),
		"what is mapped now can be written to");
	late[5] = later[5] = 'x';
	CHECK(reader == MAP_FAILED || reader[5] == 'x', "the mapping and the file are not one");
}

int main(void)
{
	int fd = make_memfd("both", 64 * KIB, 1, 0),
	    gone = make_memfd("closed", 64 * KIB, 2, MFD_CLOEXEC);
	int file = make_memfd("unmapped", 96 * KIB, 3, 0),
	    sealed = make_memfd("sealed", 4096, 4, MFD_ALLOW_SEALING);
	int plain = make_memfd("not to be run", 4096, 5, MFD_NOEXEC_SEAL), plain_seals;
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	char link[64] = "", data[4096];
	int second, second_late;
	struct victim_vma v = {0};
	struct stat st;

	a = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	b = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	closed = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, gone, 0);
	MUST(a != MAP_FAILED && b != MAP_FAILED && closed != MAP_FAILED);
	close(gone);
	MUST(!fcntl(sealed, F_ADD_SEALS, seals) && !fchmod(file, 0640));
	plain_seals = fcntl(plain, F_GET_SEALS);
	MUST(ftruncate(file, 1 * MIB) == 0);
	MUST(lseek(file, 4096, SEEK_SET) == 4096);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	second = open(link, O_RDONLY);
	MUST(second >= 0 && lseek(second, 8, SEEK_SET) == 8);
	late = make_sealed_since("late", 6, &late_fd);
	later = make_sealed_since("later", 7, &second_late);
	close(second_late);
	victim_ready();
	victim_wait();
	SAME(a, 64 * KIB, 1, "first mapping");
	SAME(b, 64 * KIB, 1, "second mapping");
	SAME(closed, 64 * KIB, 2, "mapping without descriptor");
	CHECK(victim_vma(closed, &v) && strstr(v.path, "memfd:closed"), "its name is %s",
		v.path);
	a[77] = 'x';
	CHECK(b[77] == 'x', "the two mappings are no longer one");
	CHECK(pread(fd, data, 1, 77) == 1 && data[0] == 'x', "the file is another one");
	CHECK(readlink("/proc/self/fd/3", link, 63) > 0 && strstr(link, "memfd:both"),
		"descriptor 3 is %s", link);
	CHECK(!fstat(file, &st) && st.st_size == (off_t)MIB && (st.st_mode & 07777) == 0640 &&
			st.st_uid == getuid(),
		"size is %lld, mode %o", (long long)st.st_size, st.st_mode);
	CHECK(lseek(file, 0, SEEK_CUR) == 4096, "offset is %lld",
		(long long)lseek(file, 0, SEEK_CUR));
	CHECK(lseek(second, 0, SEEK_CUR) == 8 && write(second, data, 1) < 0 && errno == EBADF,
		"opened twice it is one");
	CHECK(pread(file, data, 4096, 0) == 4096, "%s", strerror(errno));
	SAME(data, 4096, 3, "unmapped memory file");
	CHECK(fcntl(sealed, F_GET_SEALS) == seals, "seals are %x", fcntl(sealed, F_GET_SEALS));
	CHECK(fcntl(fd, F_GET_SEALS) == F_SEAL_SEAL, "one can be sealed by now");
	CHECK(fcntl(plain, F_GET_SEALS) == plain_seals && !fstat(plain, &st) &&
			!(st.st_mode & 0111) == !!(plain_seals & F_SEAL_EXEC),
		"seals %x, were %x, mode %o", fcntl(plain, F_GET_SEALS), plain_seals,
		st.st_mode);
	CHECK(write(sealed, "x", 1) < 0 && errno == EPERM, "sealed file was written");
	CHECK(pread(sealed, data, 4096, 0) == 4096, "%s", strerror(errno));
	SAME(data, 4096, 4, "sealed memory file");
	check_sealed_since();
	return victim_done();
}
