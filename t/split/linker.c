/*
 * Linker states in every stage over a restart: without anything yet, with text of the program's or of a file that is
 * gone, and complete. What the driver writes for options comes to where the program wants it, and the code that
 * was linked stays where the program knows it to be.
 */
#include "t/split/driver_victim.h"

#define INVALID_HANDLE 400
#define PTX            1
#define TEXT           "sim module\n"
#define LOG            256
#define VALUES         5
#define REST           0xabcd000000000000 /* of a value, which the driver leaves as it is */
#define LONG           10000
#define NOT_FOUND      301
#define SIZELESS       "/proc/self/comm" /* st_size is 0 */

/* CU_JIT_INFO_LOG_BUFFER, its size, CU_JIT_ERROR_LOG_BUFFER, its size, CU_JIT_WALL_TIME */
static const int options[VALUES] = {3, 4, 5, 6, 2};

static struct stage {
	void *linker, *code;
	size_t size;
	uint64_t values[VALUES];
	char info[LOG], errors[LOG], beyond[8];
} empty, added, from_file, from_pipe, from_proc, complete, cleared, destroyed;

static void *context, *module;

void victim_hurt(void)
{
	memset(complete.info, 'x', 4);
}

static void create(struct stage *s)
{
	memset(s->info, '?', LOG); /* whatever is on a stack */
	memset(s->errors, '?', LOG);
	memcpy(s->beyond, "beyond", 7);
	s->values[0] = (uint64_t)s->info;
	s->values[1] = REST | LOG;
	s->values[2] = (uint64_t)s->errors;
	s->values[3] = REST | LOG;
	s->values[4] = REST;
	OK(cuLinkCreate_v2(VALUES, options, (void **)s->values, &s->linker));
}

static void add(struct stage *s)
{
	OK(cuLinkAddData_v2(s->linker, PTX, TEXT, sizeof(TEXT), "text", 0, NULL, NULL));
}

/* For what the driver says next. */
static void clear(struct stage *s)
{
	memset(s->info, 0, LOG);
	s->values[1] = REST | LOG;
	s->values[4] = REST;
}

static void finish(struct stage *s)
{
	OK(cuLinkComplete(s->linker, &s->code, &s->size));
}

static void add_file(struct stage *s)
{
	int fd = open("linked", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, TEXT, strlen(TEXT)) == (ssize_t)strlen(TEXT));
	close(fd);
	OK(cuLinkAddFile_v2(s->linker, PTX, "linked", 0, NULL, NULL));
	MUST(!unlink("linked"));
}

/* More than is read at once of what has no size. */
static char long_text[LONG + 1];

static void *write_pipe(void *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	memset(long_text, '#', LONG);
	MUST(fd >= 0 && write(fd, long_text, LONG) == LONG);
	close(fd);
	return NULL;
}

/* It can be read once. */
static void add_pipe(struct stage *s)
{
	static char path[] = "piped";
	pthread_t thread;

	MUST(!mkfifo(path, 0600) && !pthread_create(&thread, NULL, write_pipe, path));
	OK(cuLinkAddFile_v2(s->linker, PTX, path, 0, NULL, NULL));
	MUST(!pthread_join(thread, NULL) && !unlink(path));
}

static void add_no_file(void)
{
	void *linker;

	OK(cuLinkCreate_v2(0, NULL, NULL, &linker));
	CHECK(cuLinkAddFile_v2(linker, PTX, "no file", 0, NULL, NULL) == NOT_FOUND,
		"a file that is not there is added");
	OK(cuLinkDestroy(linker));
}

/* @time: how often the driver has done something that takes time. */
static void check(const struct stage *s, const char *info, float time)
{
	float said;

	CHECK(!strcmp(s->info, info), "the log has \"%.40s\", not \"%s\"", s->info, info);
	CHECK(!*s->errors, "the log of errors has \"%.40s\"", s->errors);
	CHECK(s->values[0] == (uint64_t)s->info && s->values[2] == (uint64_t)s->errors,
		"the addresses of logs have changed");
	CHECK(s->values[1] == (REST | (*info ? strlen(info) + 1 : LOG)),
		"the log is of %#lx bytes", s->values[1]);
	CHECK(s->values[3] == (REST | LOG), "the log of errors is of %#lx bytes", s->values[3]);
	memcpy(&said, &s->values[4], sizeof(said));
	CHECK(said == time && (s->values[4] & REST) == REST, "the time is %f (%#lx), not %f",
		said, s->values[4], time);
	CHECK(!strcmp(s->beyond, "beyond"), "more than the logs was written");
}

static void check_code(const struct stage *s)
{
	void *function, *loaded;

	CHECK(s->size == sizeof(TEXT) && !memcmp(s->code, TEXT, s->size),
		"the code is another");
	OK(cuModuleLoadData(&loaded, s->code));
	OK(cuModuleGetFunction(&function, loaded, "count"));
	OK(cuModuleUnload(loaded));
}

/* The code is what was in the file when it was added. */
static void check_proc(struct stage *s)
{
	check(s, "added " SIZELESS "\n", 1);
	finish(s);
	CHECK(s->size == sizeof("linker\n") && !strcmp(s->code, "linker\n"),
		"the code is \"%.20s\", of %zu bytes", (char *)s->code, s->size);
	OK(cuLinkDestroy(s->linker));
}

static void check_complete(void)
{
	void *same = NULL;
	size_t size = 0;

	check(&complete, "added text\nlinked all\n", 2);
	check_code(&complete);
	OK(cuLinkComplete(complete.linker, &same, &size));
	CHECK(same == complete.code && size == complete.size, "the code is at %p, was at %p",
		same, complete.code);
	OK(cuLinkDestroy(complete.linker));
	CHECK(cuLinkDestroy(complete.linker) == INVALID_HANDLE, "it can be destroyed twice");
}

static void use(void)
{
	check(&empty, "", 0);
	add(&empty);
	check(&empty, "added text\n", 1);
	finish(&empty);
	check_code(&empty);
	check(&added, "added text\n", 1);
	finish(&added);
	check(&added, "added text\nlinked all\n", 2);
	clear(&added);
	finish(&added);
	check(&added, "linked all\n", 1);
	check_code(&added);
	check(&cleared, "linked all\n", 1);
	finish(&cleared);
	check(&cleared, "linked all\nlinked all\n", 2);
	check_code(&cleared);
	check(&from_file, "added linked\n", 1);
	finish(&from_file);
	check(&from_file, "added linked\nlinked all\n", 2);
	check_code(&from_file);
	check(&from_pipe, "added piped\n", 1);
	finish(&from_pipe);
	CHECK(from_pipe.size == LONG + 1 && !memcmp(from_pipe.code, long_text, LONG + 1),
		"the code is not what was in the pipe, but of %zu bytes", from_pipe.size);
	check_proc(&from_proc);
	check_complete();
	OK(cuLinkDestroy(empty.linker));
	OK(cuLinkDestroy(added.linker));
	OK(cuLinkDestroy(cleared.linker));
	check(&cleared, "linked all\nlinked all\ndestroyed all\n", 2);
	OK(cuLinkDestroy(from_file.linker));
	OK(cuLinkDestroy(from_pipe.linker));
}

int main(void)
{
	void *function;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	create(&empty);
	create(&added);
	add(&added);
	create(&from_file);
	add_file(&from_file);
	create(&from_pipe);
	add_pipe(&from_pipe);
	create(&from_proc);
	OK(cuLinkAddFile_v2(from_proc.linker, PTX, SIZELESS, 0, NULL, NULL));
	add_no_file();
	create(&complete);
	add(&complete);
	finish(&complete);
	create(&cleared);
	add(&cleared);
	clear(&cleared);
	check(&cleared, "", 0);
	finish(&cleared);
	check(&cleared, "linked all\n", 1);
	create(&destroyed);
	add(&destroyed);
	finish(&destroyed);
	OK(cuModuleLoadData(&module, destroyed.code));
	OK(cuLinkDestroy(destroyed.linker));
	victim_ready();
	victim_wait();
	use();
	OK(cuModuleGetFunction(&function, module, "count"));
	return victim_done();
}
