/*
 * Processes made by clone(2) that share memory, descriptors, directories or the actions of
 * signals, in the combinations that the argument names, and that end with other signals than
 * SIGCHLD. kcmp(2) and /proc tell who shares what with whom, and using it shows that it is so.
 */
#include <linux/kcmp.h>
#include <sched.h>

#include "tree.h"

#define MOST     12
#define SHARE    (CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND)
#define NEW_FD   90
#define NEW_MASK 051

enum role { LIVES, ENDS, ZOMBIE, FOUNDS_SESSION, HAS_THREAD };

/* Number 0 is the first process. Members are made by their makers in this order. */
static const struct member {
	const char *family;
	int maker, flags, signal;
	enum role role;
	bool first; /* made before its maker founds a session */
} members[] = {
	{"pairs", 0, CLONE_FILES, SIGCHLD},
	{"pairs", 0, CLONE_FS, SIGCHLD},
	{"pairs", 0, CLONE_VM, SIGCHLD},
	{"pairs", 0, CLONE_VM | CLONE_SIGHAND, SIGURG},
	{"pairs", 0, SHARE, 0},
	{"pairs", 0, 0, SIGUSR2},
	{"pairs", 0, CLONE_FILES | CLONE_FS, 40},
	{"pairs", 0, 0, 0, ZOMBIE},

	{"chain", 0, SHARE, SIGCHLD},
	{"chain", 1, SHARE, SIGCHLD},
	{"chain", 1, 0, SIGCHLD},
	{"chain", 2, CLONE_FILES, SIGCHLD},
	{"chain", 3, CLONE_VM, SIGUSR2},
	{"chain", 1, 0, SIGUSR2, ZOMBIE},
	{"chain", 5, 0, SIGCHLD},

	{"siblings", 0, CLONE_VM | CLONE_FILES, SIGCHLD},
	{"siblings", 1, CLONE_VM | CLONE_FILES | CLONE_PARENT, SIGCHLD},
	{"siblings", 2, CLONE_FS | CLONE_PARENT, SIGCHLD},
	{"siblings", 0, CLONE_FILES, SIGUSR2},
	{"siblings", 4, CLONE_FILES | CLONE_PARENT, 0},

	{"orphans", 0, CLONE_VM | CLONE_FILES, SIGCHLD, ENDS},
	{"orphans", 1, CLONE_VM | CLONE_FILES, SIGCHLD},
	{"orphans", 0, 0, SIGCHLD},
	{"orphans", 3, CLONE_VM | CLONE_FS, SIGCHLD, ENDS},
	{"orphans", 4, CLONE_VM | CLONE_FS, SIGCHLD},

	{"session", 0, CLONE_VM, SIGCHLD, FOUNDS_SESSION},
	{"session", 1, CLONE_VM, SIGCHLD, LIVES, true},
	{"session", 1, CLONE_VM | CLONE_FILES, SIGCHLD},
	{"session", 1, CLONE_FS, SIGCHLD},

	{"threads", 0, SHARE, SIGCHLD, HAS_THREAD},
	{"threads", 0, CLONE_VM, SIGCHLD, HAS_THREAD},
	{"threads", 1, CLONE_VM, 0},
};

static const int kinds[4] = {KCMP_VM, KCMP_FILES, KCMP_FS, KCMP_SIGHAND};

/* What all can see. */
static struct {
	pid_t pid[MOST];
	bool with_first[MOST][4];
	volatile int go;
} * all;

static const char *family = "pairs";
static const struct member *of_family[MOST];
static int count = 1, living;
static volatile int word;

static void handle(int signal)
{
}

static bool lives(int i)
{
	return !i || (of_family[i]->role != ENDS && of_family[i]->role != ZOMBIE);
}

/* Of a process: field number @number of /proc/PID/stat, from the fourth on. */
static long field(pid_t pid, int number)
{
	char path[64], text[1024] = "", *p;
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -1;
	p = strrchr(text, ')') + 2;
	for (int i = 3; i < number; i++)
		p = strchr(p, ' ') + 1;
	return strtol(p, NULL, 10);
}

/* ---- the members ---- */

static int thread(void *arg)
{
	while (!all->go)
		syscall(SYS_futex, &all->go, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	tree_tell('k');
	syscall(SYS_exit, 0);
	return 0;
}

static int begin(void *arg);

static void *new_stack(void)
{
	return victim_anon(64 * KIB) + 64 * KIB;
}

static void make_members(int maker, bool first)
{
	for (long i = 1; i < count; i++) {
		const struct member *m = of_family[i];
		int signal = m->flags & CLONE_PARENT ? 0 : m->signal;

		if (m->maker != maker || m->first != first)
			continue;
		all->pid[i] = clone(begin, new_stack(), m->flags | signal, (void *)i);
		MUST(all->pid[i] > 0);
	}
}

static bool same(int i, int k, int kind)
{
	return !syscall(SYS_kcmp, all->pid[i], all->pid[k], kinds[kind], 0L, 0L);
}

/* Others may share it: only looked at. */
static unsigned own_mask(void)
{
	char text[2048] = "", *p;
	unsigned mask = 0;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	p = strstr(text, "Umask:");
	MUST(p && sscanf(p, "Umask: %o", &mask) == 1);
	return mask;
}

static void use_it(int i)
{
	struct sigaction action;
	unsigned mask = own_mask();
	const bool *with = all->with_first[i];

	CHECK((word == 42) == with[0], "member %d: word is %d", i, word);
	CHECK((fcntl(NEW_FD, F_GETFD) >= 0) == with[1], "member %d: descriptor %d", i, NEW_FD);
	CHECK((mask == NEW_MASK) == with[2], "member %d: mask is %o", i, mask);
	sigaction(SIGUSR2, NULL, &action);
	CHECK((action.sa_handler == handle) == with[3], "member %d: action", i);
}

static int begin(void *arg)
{
	int i = (long)arg;
	const struct member *m = of_family[i];
	pid_t pid = getpid();

	make_members(i, true);
	if (m->role == FOUNDS_SESSION)
		MUST(setsid() == pid);
	make_members(i, false);
	if (m->role == HAS_THREAD)
		MUST(clone(thread, new_stack(), SHARE | CLONE_THREAD | CLONE_SYSVSEM, NULL) >
			0);
	if (m->role == ENDS || m->role == ZOMBIE)
		_exit(5);
	tree_tell('r');
	tree_pass();
	CHECK(getpid() == pid, "member %d: process id was %d, is %d", i, pid, getpid());
	use_it(i);
	tree_tell(victim_failures ? 'x' : 'k');
	/* Until all have looked. */
	while (all->go < 2)
		syscall(SYS_futex, &all->go, 0 /* FUTEX_WAIT */, all->go, NULL, NULL, 0);
	_exit(0);
}

/* ---- the first ---- */

static struct {
	bool same[MOST][4];
	long parent, signal, session;
} before[MOST];

static bool is_member(pid_t pid)
{
	for (int i = 0; i < count; i++)
		if (all->pid[i] == pid)
			return true;
	return false;
}

static void look_at_process(int i, bool compare)
{
	long parent = field(all->pid[i], 4), signal = field(all->pid[i], 38),
	     session = field(all->pid[i], 6);

	/* Whose orphans are, and the first one's session, may change. */
	if (!is_member(parent))
		parent = 0;
	if (session == getsid(0))
		session = 0;
	if (compare) {
		CHECK(parent == before[i].parent, "member %d: parent was %ld, is %ld", i,
			before[i].parent, parent);
		CHECK(signal == before[i].signal, "member %d: signal was %ld, is %ld", i,
			before[i].signal, signal);
		CHECK(session == before[i].session, "member %d: session was %ld, is %ld", i,
			before[i].session, session);
	}
	before[i].parent = parent;
	before[i].signal = signal;
	before[i].session = session;
	for (int k = 0; k < count; k++)
		for (int kind = 0; kind < 4 && lives(i) && lives(k); kind++) {
			bool is = same(i, k, kind);

			CHECK(!compare || is == before[i].same[k][kind],
				"members %d and %d: kind %d shared %d", i, k, kind, is);
			before[i].same[k][kind] = is;
		}
}

void victim_hurt(void)
{
	unshare(CLONE_FILES | CLONE_FS);
}

/* Of the first one's own children: they end as they were to, and it is told by their signal. */
static void reap(int i)
{
	int status = -1, signal = before[i].signal;
	sigset_t pending;
	pid_t got;

	if (signal != SIGCHLD) {
		got = waitpid(all->pid[i], &status, WNOHANG);
		CHECK(got < 0 && errno == ECHILD, "member %d is waited for as a child", i);
	}
	got = waitpid(all->pid[i], &status, __WALL);
	CHECK(got == all->pid[i] && WIFEXITED(status) &&
			WEXITSTATUS(status) == (lives(i) ? 0 : 5),
		"member %d: %d, status %x", i, got, status);
	sigpending(&pending);
	if (signal)
		CHECK(sigismember(&pending, signal), "member %d: no signal %d", i, signal);
}

int main(int argc, char **argv)
{
	sigset_t block;

	if (argc > 1)
		family = argv[1];
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!strcmp(members[i].family, family))
			of_family[count++] = &members[i];
	all = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	all->pid[0] = getpid();
	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, NULL);
	signal(SIGUSR2, SIG_DFL);
	umask(022);
	make_members(0, false);
	for (int i = 1; i < count; i++) {
		living += lives(i) + (of_family[i]->role == HAS_THREAD);
		if (lives(i))
			MUST(tree_hear() == 'r');
	}
	for (int i = 1; i < count; i++) {
		if (of_family[i]->role == ENDS && !of_family[i]->maker)
			waitpid(all->pid[i], NULL, __WALL);
		else if (!lives(i))
			tree_until_state(all->pid[i], 'Z');
	}
	for (int i = 0; i < count; i++)
		if (lives(i))
			look_at_process(i, false);
	for (int i = 0; i < count; i++)
		for (int k = 0; k < 4; k++)
			all->with_first[i][k] = lives(i) && before[0].same[i][k];
	victim_ready();
	victim_wait();
	for (int i = 0; i < count; i++)
		if (lives(i))
			look_at_process(i, true);
	word = 42;
	MUST(dup2(1, NEW_FD) == NEW_FD);
	umask(NEW_MASK);
	signal(SIGUSR2, handle);
	all->go = 1;
	for (int i = 1; i < count; i++)
		syscall(SYS_futex, &all->go, 1 /* FUTEX_WAKE */, INT_MAX, NULL, NULL, 0);
	for (int i = 1; i < count; i++)
		if (lives(i))
			tree_open(1);
	for (int i = 0; i < living; i++) {
		char c = tree_hear();

		CHECK(c == 'k', "a member reports %d", c);
		if (c != 'k')
			break;
	}
	all->go = 2;
	syscall(SYS_futex, &all->go, 1 /* FUTEX_WAKE */, INT_MAX, NULL, NULL, 0);
	for (int i = 1; i < count; i++)
		if (before[i].parent == getpid() ||
			(!lives(i) && of_family[i]->role == ZOMBIE && !of_family[i]->maker))
			reap(i);
	return victim_done();
}
