/* Files that the program names to the driver: what is in them at that moment. */
#include "stubs/cuda/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "shared/raw.h"
#include "stubs/cuda/objects.h"

#define LEAST_ROOM  4096
#define INTERRUPTED (-4) /* EINTR */

static int grow(struct whole_file *f)
{
	uint64_t room = 2 * f->room;
	char *data = block_new(room);

	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	raw_copy(data, f->data, f->size);
	block_free(f->data, f->room);
	f->data = data;
	f->room = room;
	return 0;
}

/* The size of a pipe, or of a file in /proc, is not known before. */
static int read_all(int fd, struct whole_file *f)
{
	long n;

	do {
		if (f->size == f->room && grow(f))
			return CUDA_ERROR_OUT_OF_MEMORY;
		n = raw(SYS_read, fd, f->data + f->size, f->room - f->size);
		if (n < 0 && n != INTERRUPTED)
			return CUDA_ERROR_FILE_NOT_FOUND;
		if (n > 0)
			f->size += n;
	} while (n);
	f->data[f->size] = 0;
	return 0;
}

static long open_file(const char *path)
{
	long fd;

	do
		fd = raw(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
	while (fd == INTERRUPTED);
	return fd;
}

int read_file(const char *path, struct whole_file *f)
{
	long fd = open_file(path);
	struct stat st;
	int r = CUDA_ERROR_FILE_NOT_FOUND;

	*f = (struct whole_file){0};
	if (raw_failed(fd))
		return r;
	if (!state_usable())
		r = CUDA_ERROR_NOT_INITIALIZED;
	else if (!fstat(fd, &st)) {
		f->room = st.st_size ? (uint64_t)st.st_size + 1 : LEAST_ROOM;
		f->data = block_new(f->room);
		r = f->data ? read_all(fd, f) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	raw(SYS_close, fd); /* it was only read */
	if (r && f->data)
		block_free(f->data, f->room);
	return r;
}
