/* Files that the program names to the driver: what is in them at that moment. */
#include "stubs/cuda/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "shared/raw.h"
#include "stubs/cuda/objects.h"

static int read_all(int fd, struct whole_file *f)
{
	for (uint64_t done = 0; done < f->size;) {
		long n = raw(SYS_read, fd, f->data + done, f->size - done);

		if (n == -4) /* EINTR */
			continue;
		if (n <= 0)
			return CUDA_ERROR_FILE_NOT_FOUND;
		done += n;
	}
	return 0;
}

int read_file(const char *path, struct whole_file *f)
{
	long fd = raw(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
	struct stat st;
	int r = CUDA_ERROR_FILE_NOT_FOUND;

	*f = (struct whole_file){0};
	if (raw_failed(fd))
		return r;
	if (!state_usable())
		r = CUDA_ERROR_NOT_INITIALIZED;
	else if (!fstat(fd, &st)) {
		f->size = st.st_size;
		f->data = block_new(f->size + 1);
		r = f->data ? read_all(fd, f) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	raw(SYS_close, fd); /* it was only read */
	if (r && f->data)
		block_free(f->data, f->size + 1);
	return r;
}
