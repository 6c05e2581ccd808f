/* What belongs to the process: working directory, umask, limits, name, ids, arguments and
 * environment as /proc shows them, the program's file. */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "victim.h"

void victim_hurt(void)
{
	umask(077);
}

static ssize_t slurp(const char *path, char *data, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, data, size);

	close(fd);
	return n;
}

struct kept {
	char cwd[PATH_MAX], exe[PATH_MAX], comm[32], cmdline[4096], environ[65536], auxv[1024];
	char root[PATH_MAX];
	ssize_t cmdline_size, environ_size, auxv_size;
	struct rlimit limits[RLIM_NLIMITS];
	pid_t pid, tid;
	uid_t uid[3], gid[3];
	int dumpable, no_new_privs, pdeathsig, subreaper, priority, oom;
};

static void look_at_process(struct kept *k)
{
	memset(k, 0, sizeof(*k));
	MUST(getcwd(k->cwd, sizeof(k->cwd)));
	MUST(readlink("/proc/self/exe", k->exe, sizeof(k->exe) - 1) > 0);
	MUST(readlink("/proc/self/root", k->root, sizeof(k->root) - 1) > 0);
	MUST(slurp("/proc/self/comm", k->comm, sizeof(k->comm)) > 0);
	k->cmdline_size = slurp("/proc/self/cmdline", k->cmdline, sizeof(k->cmdline));
	k->environ_size = slurp("/proc/self/environ", k->environ, sizeof(k->environ));
	k->auxv_size = slurp("/proc/self/auxv", k->auxv, sizeof(k->auxv));
	for (int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit(i, &k->limits[i]);
	k->pid = getpid();
	k->tid = victim_tid();
	getresuid(&k->uid[0], &k->uid[1], &k->uid[2]);
	getresgid(&k->gid[0], &k->gid[1], &k->gid[2]);
	k->dumpable = prctl(PR_GET_DUMPABLE);
	k->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	prctl(PR_GET_PDEATHSIG, &k->pdeathsig);
	prctl(PR_GET_CHILD_SUBREAPER, &k->subreaper);
	k->priority = getpriority(PRIO_PROCESS, 0);
	slurp("/proc/self/oom_score_adj", (char *)&k->oom, 4);
}

int main(int argc, char **argv)
{
	static struct kept was, is;
	struct rlimit r;
	mode_t mask;
	char *arg;
	int fd;

	if (argc < 3) {
		/* Arguments and environment with all that could be misread. */
		char *const args[] = {"the process", "with space", "", "new\nline", NULL};
		char *const none[] = {"A=1", "EMPTY=", "VICTIM_SET=x=y",
			getenv("VICTIM_HURT") ? "VICTIM_HURT=1" : NULL, NULL};

		execve("/proc/self/exe", args, none);
		MUST(0);
	}
	MUST(!mkdir("deeper", 0700) && !chdir("deeper"));
	umask(0137);
	prctl(PR_SET_NAME, "a (strange) :n");
	MUST(!getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = 777;
	MUST(!setrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = r.rlim_max = 12345678;
	MUST(!setrlimit(RLIMIT_FSIZE, &r));
	r.rlim_cur = 3;
	r.rlim_max = 7;
	MUST(!setrlimit(RLIMIT_CORE, &r));
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	setpriority(PRIO_PROCESS, 0, 4);
	fd = open("/proc/self/oom_score_adj", O_WRONLY);
	if (write(fd, "321", 3) != 3)
		MUST(0);
	close(fd);
	/* A program may write over its arguments, as servers do. */
	arg = argv[1];
	memcpy(arg, "WITH", 4);
	look_at_process(&was);
	victim_ready();
	victim_wait();
	look_at_process(&is);
	CHECK(!strcmp(is.cwd, was.cwd), "working directory %s, was %s", is.cwd, was.cwd);
	CHECK(!strcmp(is.exe, was.exe), "/proc/self/exe %s, was %s", is.exe, was.exe);
	CHECK(!strcmp(is.root, was.root), "root %s, was %s", is.root, was.root);
	CHECK(!strcmp(is.comm, was.comm), "name %s, was %s", is.comm, was.comm);
	CHECK(is.cmdline_size == was.cmdline_size &&
			!memcmp(is.cmdline, was.cmdline, was.cmdline_size),
		"cmdline has %zd bytes, had %zd", is.cmdline_size, was.cmdline_size);
	CHECK(is.environ_size == was.environ_size &&
			!memcmp(is.environ, was.environ, was.environ_size),
		"environ has %zd bytes, had %zd", is.environ_size, was.environ_size);
	CHECK(is.auxv_size == was.auxv_size && !memcmp(is.auxv, was.auxv, was.auxv_size),
		"auxv");
	for (int i = 0; i < RLIM_NLIMITS; i++)
		CHECK(!memcmp(&is.limits[i], &was.limits[i], sizeof(is.limits[i])),
			"limit %d is %lld %lld, was %lld %lld", i,
			(long long)is.limits[i].rlim_cur, (long long)is.limits[i].rlim_max,
			(long long)was.limits[i].rlim_cur, (long long)was.limits[i].rlim_max);
	CHECK(is.pid == was.pid && is.tid == was.tid, "ids %d %d, were %d %d", is.pid, is.tid,
		was.pid, was.tid);
	CHECK(!memcmp(is.uid, was.uid, sizeof(is.uid)) &&
			!memcmp(is.gid, was.gid, sizeof(is.gid)),
		"user %d, was %d; group %d, was %d", is.uid[0], was.uid[0], is.gid[0],
		was.gid[0]);
	CHECK(is.dumpable == was.dumpable, "dumpable %d, was %d", is.dumpable, was.dumpable);
	CHECK(is.no_new_privs == was.no_new_privs, "no_new_privs %d", is.no_new_privs);
	CHECK(is.pdeathsig == was.pdeathsig, "parent-death signal %d", is.pdeathsig);
	CHECK(is.subreaper == was.subreaper, "subreaper %d", is.subreaper);
	CHECK(is.priority == was.priority, "nice %d, was %d", is.priority, was.priority);
	CHECK(is.oom == was.oom, "oom_score_adj has changed");
	mask = umask(0);
	CHECK(mask == 0137, "umask is %o", mask);
	CHECK(!strcmp(argv[1], "WITH space") && !strcmp(getenv("VICTIM_SET"), "x=y"),
		"own strings");
	CHECK(open("there", O_CREAT | O_WRONLY, 0600) >= 0 && !access("../deeper/there", F_OK),
		"relative names");
	return victim_done();
}
