/* Something that a checkpoint refuses: kinds of descriptors, memory and state of processes. */
#include <linux/perf_event.h>
#include <linux/if_packet.h>
#include <asm/ldt.h>
#include <linux/landlock.h>
#include <linux/userfaultfd.h>
#include <linux/rtnetlink.h>
#include <mqueue.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/un.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "refuse.h"
#include "uring.h"

/* The test's own server: its port is in the environment. */
static void outside(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	need(getenv("OUTSIDE_PORT"), "no server");
	a.sin_port = htons(atoi(getenv("OUTSIDE_PORT")));
	need_socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
}

static void still_outside(void)
{
	char text[8];

	CHECK(write(fd, "echo", 4) == 4 && recv(fd, text, 4, MSG_WAITALL) == 4 &&
			!memcmp(text, "echo", 4),
		"the connection is broken");
}

/* Packets of its own to itself, which it has not read. */
static void raw(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	need_socket(AF_INET, SOCK_RAW, 253); /* for experiments (RFC 3692) */
	MUST(sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)) == 1);
}

static void still_raw(void)
{
	char packet[32];

	CHECK(recv(fd, packet, sizeof(packet), MSG_DONTWAIT) == 21, "the packet is gone");
}

static void packet(void)
{
	const struct tpacket_req ring = {4096, 2, 2048, 4};

	need_socket(AF_PACKET, SOCK_RAW, 0);
	MUST(!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)));
}

static void vsock(void)
{
	need_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static void alg(void)
{
	need_socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static void multicast(void)
{
	struct ip_mreqn group = {.imr_multiaddr = {htonl(0xe00000fb)}};

	group.imr_ifindex = if_nametoindex("lo");
	need_socket(AF_INET, SOCK_DGRAM, 0);
	need(!setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)),
		"no multicast");
}

static void urgent(void)
{
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fd = pair[0];
	other = pair[1];
	need(send(other, "!", 1, MSG_OOB) == 1, "no urgent data");
}

static void still_urgent(void)
{
	char c = 0;

	CHECK(recv(fd, &c, 1, MSG_OOB) == 1 && c == '!', "urgent data");
}

static void headers(void)
{
	const char nothing_but_ends[4] = {IPOPT_NOP, IPOPT_NOP, IPOPT_NOP, IPOPT_END};

	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!setsockopt(fd, IPPROTO_IP, IP_OPTIONS, nothing_but_ends, 4));
}

static void headers6(void)
{
	/* Next header, units of 8 bytes beyond the first; padding of 6 bytes (RFC 8200, 4.2).
	 */
	const char padding[8] = {0, 0, 1, 4};

	need_socket(AF_INET6, SOCK_DGRAM, 0);
	need(!setsockopt(fd, IPPROTO_IPV6, IPV6_DSTOPTS, padding, sizeof(padding)),
		"no such option here");
}

/* A filter that the kernel does not show: an eBPF program, "return 0xffff". */
static void filter(void)
{
	struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0xffff},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
	};
	int program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));

	need(program >= 0, "no BPF");
	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)));
	close(program);
}

/* A connection that is not accepted yet, with bytes in it. */
static void wait_unaccepted(struct sockaddr *a, socklen_t size)
{
	MUST((other = socket(a->sa_family, SOCK_STREAM, 0)) >= 0);
	MUST(!bind(other, a, size) && !listen(other, 1) && !getsockname(other, a, &size));
	need_socket(a->sa_family, SOCK_STREAM, 0);
	MUST(!connect(fd, a, size) && write(fd, "early", 5) == 5);
}

static void unaccepted(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "unaccepted"};

	wait_unaccepted((struct sockaddr *)&a, sizeof(a));
}

static void unaccepted_tcp(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	wait_unaccepted((struct sockaddr *)&a, sizeof(a));
}

/* While the backlog is full the other end has not even taken the bytes. */
static void unaccepted_full(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);
	int first, on = 1, off = 0;

	need_socket(AF_INET, SOCK_STREAM, 0);
	MUST((first = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	MUST((other = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	/* It is not in the backlog before something has come. */
	MUST(!setsockopt(other, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on)));
	MUST(!listen(other, 8) && !getsockname(other, (struct sockaddr *)&a, &size));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(!connect(fd, (struct sockaddr *)&a, size) && !listen(other, 0));
	MUST(!setsockopt(other, IPPROTO_TCP, TCP_DEFER_ACCEPT, &off, sizeof(off)));
	MUST(!connect(first, (struct sockaddr *)&a, size));
	MUST(write(fd, "early", 5) == 5);
}

static void still_unaccepted_full(void)
{
	char text[6] = "";
	int accepted;

	MUST(accept(other, NULL, NULL) >= 0);
	accepted = accept(other, NULL, NULL);
	CHECK(recv(accepted, text, 5, MSG_WAITALL) == 5 && !strcmp(text, "early"), "'%s'",
		text);
}

static void still_unaccepted(void)
{
	int accepted = accept(other, NULL, NULL);
	char text[6] = "";

	CHECK(recv(accepted, text, 5, MSG_WAITALL) == 5 && !strcmp(text, "early"), "'%s'",
		text);
}

static pid_t ring_waiter;
static atomic_int ring_result;

/* For an event that does not come. */
static void *wait_for_ring(void *arg)
{
	ring_waiter = victim_tid();
	(void)syscall(426 /* io_uring_enter */, fd, 0, 1, 1 /* GETEVENTS */, NULL, 0);
	ring_result = errno;
	return NULL;
}

/* It waits for bytes that will not come, some of which may have come. */
static void io_uring(void)
{
	struct io_uring_sqe *sqe;
	static char bytes[8];
	struct uring ring;
	int ends[2];

	uring_open(&ring, 4, 0);
	fd = ring.fd;
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	sqe = uring_next(&ring, 1);
	sqe->opcode = IORING_OP_RECV;
	sqe->fd = ends[0];
	sqe->addr = (uintptr_t)bytes;
	sqe->len = sizeof(bytes);
	sqe->msg_flags = MSG_WAITALL;
	MUST(uring_submit(&ring, 0) == 1);
	victim_thread(wait_for_ring, NULL);
	while (!ring_waiter)
		usleep(500);
	victim_until_blocked(ring_waiter, 426);
}

static void still_waits_for_ring(void)
{
	CHECK(!ring_result, "it has been interrupted: %s", strerror(ring_result));
}

static void external_pipe(void)
{
	struct stat st;

	fd = 9; /* from the test script */
	need(!fstat(fd, &st) && S_ISFIFO(st.st_mode), "no pipe at descriptor 9");
}

/* Bytes that were in it before packets were wanted. */
static void packets_and_bytes(void)
{
	int ends[2];

	MUST(!pipe(ends) && write(ends[1], "bytes", 5) == 5);
	MUST(!fcntl(ends[1], F_SETFL, O_DIRECT) && write(ends[1], "packet", 6) == 6);
	fd = ends[1];
	other = ends[0];
}

static void still_packets(void)
{
	char text[20];

	CHECK(read(other, text, 3) == 3 && read(other, text, 20) == 8 &&
			!memcmp(text, "espacket", 8),
		"the pipe has changed");
}

/* Its other name is in a place that nobody would look for it. */
static void lost_name(void)
{
	fd = open("name", O_RDWR | O_CREAT, 0600);
	MUST(fd >= 0 && !mkdir("elsewhere", 0700) && !link("name", "elsewhere/other") &&
		!unlink("name"));
}

/* What it watches is not ready for anything, and cannot be made so at a restart. */
static void one_shot(void)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT};
	char events[4096];

	other = fanotify_init(FAN_CLASS_NOTIF | 0x200 /* FAN_REPORT_FID */, O_RDONLY);
	MUST(!mkdir("marked", 0700));
	need(other >= 0 && !fanotify_mark(other, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD,
				   "marked"),
		"no fanotify");
	MUST(!mkdir("marked/1", 0700) && (fd = epoll_create1(0)) >= 0);
	MUST(!epoll_ctl(fd, EPOLL_CTL_ADD, other, &e) && epoll_wait(fd, &e, 1, 0) == 1);
	MUST(read(other, events, sizeof(events)) > 0);
}

static void still_fired(void)
{
	struct epoll_event e;

	CHECK(!mkdir("marked/2", 0700), "mkdir: %m");
	CHECK(epoll_wait(fd, &e, 1, 0) == 0, "it fires again");
}

static void perf_event(void)
{
	struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_TASK_CLOCK};

	fd = syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
	need(fd >= 0, "no perf events here");
}

static void bpf_map(void)
{
	/* BPF_MAP_CREATE of an array: type, key size, value size, entries */
	uint32_t attr[16] = {2, 4, 4, 1};

	fd = syscall(SYS_bpf, 0, attr, sizeof(attr));
	need(fd >= 0, "no BPF here");
}

static void secret_memory(void)
{
	fd = syscall(447 /* memfd_secret */, 0);
	need(fd >= 0, "no memfd_secret here");
}

static void name_space(void)
{
	char path[64], c;
	int ends[2];

	MUST(!pipe(ends) && (child = fork()) >= 0);
	if (!child) {
		/* CLONE_NEWUSER | CLONE_NEWNET */
		(void)!write(ends[1], syscall(SYS_unshare, 0x50000000) ? "-" : "+", 1);
		pause();
	}
	MUST(read(ends[0], &c, 1) == 1);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", child);
	fd = open(path, O_RDONLY);
	MUST(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	need(fd >= 0 && c == '+', "no network namespaces here");
}

/* In which system calls are run in it. */
static void no_vdso(void)
{
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);

	/* It goes as a whole only. */
	need(vdso && !munmap(vdso, 8192), "no vdso of two pages here");
}

static void notify(void)
{
	MUST(!mkdir("quiet", 0700));
	fd = open("quiet", O_RDONLY | O_DIRECTORY);
	need(!fcntl(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT), "no F_NOTIFY here");
}

/* Somebody wants to write to it. */
static void broken_lease(void)
{
	int writer;

	MUST(signal(SIGIO, SIG_IGN) != SIG_ERR);
	MUST((writer = open("leased", O_WRONLY | O_CREAT, 0600)) >= 0 && !close(writer));
	MUST((fd = open("leased", O_RDONLY)) >= 0);
	need(!fcntl(fd, F_SETLEASE, F_RDLCK), "no leases here");
	MUST(open("leased", O_WRONLY | O_NONBLOCK) < 0 && errno == EWOULDBLOCK);
}

/* A restart would have the file open a second time, to map it. */
static void mapped_lease(void)
{
	MUST((fd = open("leased", O_RDWR | O_CREAT, 0600)) >= 0 && !ftruncate(fd, 4096));
	need(!fcntl(fd, F_SETLEASE, F_WRLCK), "no leases here");
	MUST(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
}

static void need_terminal(void)
{
	need(!openpty(&fd, &other, NULL, NULL, NULL), "no pseudo-terminals here");
}

static void terminal_external(void)
{
	struct termios t;

	need_terminal();
	MUST(!tcgetattr(other, &t));
	t.c_lflag |= EXTPROC;
	MUST(!tcsetattr(other, TCSANOW, &t));
}

static void terminal_locked(void)
{
	struct termios t;

	need_terminal();
	memset(&t, 0xff, sizeof(t));
	need(!ioctl(other, TIOCSLCKTRMIOS, &t), "only root can lock settings");
}

static void terminal_status(void)
{
	need_terminal();
	MUST(!ioctl(fd, TIOCPKT, &(int){1}) && !tcflush(other, TCIFLUSH));
}

static void still_status(void)
{
	char status;

	CHECK(read(fd, &status, 1) == 1 && status == TIOCPKT_FLUSHREAD, "another status");
}

/* An answer of the kernel waits: all network interfaces. */
static void netlink_answer(void)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg message;
	} ask = {
		.head.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)),
		.head.nlmsg_type = RTM_GETLINK,
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};

	need_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	MUST(send(fd, &ask, ask.head.nlmsg_len, 0) == (ssize_t)ask.head.nlmsg_len);
	MUST(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1);
}

static void still_answer(void)
{
	char answer[64];

	CHECK(recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0, "the answer is gone");
}

static void pidfd_outside(void)
{
	fd = syscall(SYS_pidfd_open, 1, 0);
	need(fd >= 0, "no pidfd of process 1 here");
}

/* The supervisor. */
static void owner_outside(void)
{
	int ends[2];

	MUST(!pipe(ends) && !fcntl(ends[0], F_SETOWN, getppid()));
	fd = ends[0];
}

static void removed_root(void)
{
	MUST(!mkdir("gone", 0700));
	fd = open(".", O_RDONLY | O_DIRECTORY);
	need(!chroot("gone"), "chroot is not permitted");
	MUST(fd >= 0 && !unlinkat(fd, "gone", AT_REMOVEDIR));
}

static void file_of_outside(void)
{
	fd = open("/proc/1/stat", O_RDONLY);
	need(fd >= 0, "files of other processes cannot be opened here");
}

/* Its other name is in another directory. */
static void fifo_elsewhere(void)
{
	MUST(!mkdir("other", 0700) && !mkfifo("here", 0600) && !link("here", "other/there"));
	fd = open("here", O_RDWR);
	MUST(fd >= 0 && !unlink("here"));
}

static void sealed(void)
{
	p = victim_anon(4096);
	need(!syscall(462 /* mseal */, p, 4096, 0), "no mseal here");
}

static int wait_for_end(void *arg)
{
	while (syscall(SYS_pause))
		;
	return 0;
}

/* A process that shares its descriptors with its grandparent, but no longer with its parent. */
static int leave_gap(void *arg)
{
	static char stack[64 * 1024];
	pid_t *grandchild = arg;

	*grandchild = clone(wait_for_end, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);
	MUST(*grandchild > 0 && !unshare(CLONE_FILES));
	(void)!write(fd, "", 1);
	return wait_for_end(NULL);
}

static pid_t between;

static void shared_over_a_gap(void)
{
	static char stack[64 * 1024];
	pid_t *grandchild =
		victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	int ends[2];
	char c;

	MUST(!pipe(ends));
	fd = ends[1];
	between = clone(leave_gap, stack + sizeof(stack), CLONE_FILES | SIGCHLD, grandchild);
	MUST(between > 0 && read(ends[0], &c, 1) == 1);
	child = *grandchild;
}

static void end_gap(void)
{
	CHECK(!kill(child, SIGKILL) && !kill(between, SIGKILL) &&
			waitpid(between, NULL, 0) == between,
		"children");
}

static void *leave_table(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t set;
	int signals;

	MUST(!unshare(CLONE_FILES) && !sigemptyset(&set) && !sigaddset(&set, SIGUSR2));
	fd = epoll_create1(EPOLL_CLOEXEC);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	MUST(fd >= 0 && signals >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, signals, &event));
	*(volatile bool *)arg = true;
	for (;;)
		pause();
	return NULL;
}

/* A restart sets its watches in another process, whose signals it would tell of. */
static void epoll_of_thread(void)
{
	static volatile bool done;

	victim_thread(leave_table, (void *)&done);
	while (!done)
		usleep(100);
	/* The process does not have it. */
	other = fd;
	fd = -1;
}

/* Mounts can be waited for; but the file is one that is opened again at the very end. */
static void epoll_mounts(void)
{
	struct epoll_event event = {.events = EPOLLERR};
	int mounts = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);

	fd = epoll_create1(EPOLL_CLOEXEC);
	MUST(mounts >= 0 && fd >= 0 && !epoll_ctl(fd, EPOLL_CTL_ADD, mounts, &event));
}

static void fanotify_events(void)
{
	fd = fanotify_init(FAN_CLASS_NOTIF | 0x200 /* FAN_REPORT_FID */, O_RDONLY);
	need(fd >= 0 && !fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD, "."),
		"no fanotify");
	MUST(!mkdir("made", 0700));
}

static void fanotify_permissions(void)
{
	fd = fanotify_init(FAN_CLASS_CONTENT, O_RDONLY);
	need(fd >= 0, "no fanotify");
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

static void message_queue(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	char name[32];

	snprintf(name, sizeof(name), "/trecr-test-%d", getpid());
	fd = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	need(fd >= 0, "no POSIX message queues");
	mq_unlink(name);
	MUST(!mq_notify(fd, &event));
}

static void seccomp(void)
{
	struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog program = {1, &allow};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "no seccomp");
}

static void still_seccomp(void)
{
	CHECK(prctl(PR_GET_SECCOMP) == 2, "filter");
}

/* Of another program of the session. */
static void group_outside(void)
{
	need(getenv("OUTSIDE_GROUP"), "no server");
	MUST(!setpgid(0, atoi(getenv("OUTSIDE_GROUP"))));
}

static void pid_namespace_child(void)
{
	/* Its children would be made elsewhere. */
	need(!syscall(SYS_unshare, 0x20000000 /* CLONE_NEWPID */), "no pid namespaces here");
}

static void landlock(void)
{
	struct landlock_ruleset_attr rules = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK,
	};
	int ruleset = syscall(444 /* landlock_create_ruleset */, &rules, sizeof(rules), 0);

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	need(ruleset >= 0 && !syscall(446 /* landlock_restrict_self */, ruleset, 0),
		"no Landlock here");
	close(ruleset);
}

static char selector;

static void dispatch(void)
{
	need(!prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector),
		"no dispatch of system calls");
}

static void still_dispatched(void)
{
	prctl(59, 0, 0, 0, 0);
}

static struct user_desc segment = {
	.base_addr = 0x1000, .limit = 0xfff, .seg_32bit = 1, .useable = 1};

static void ldt(void)
{
	need(!syscall(SYS_modify_ldt, 0x11, &segment, sizeof(segment)),
		"no segments of one's own");
}

static void still_ldt(void)
{
	char entries[64];

	CHECK(syscall(SYS_modify_ldt, 0, entries, sizeof(entries)) > 0, "segment");
}

static void thread_area(void)
{
	segment.entry_number = -1;
	need(!syscall(SYS_set_thread_area, &segment), "no thread areas");
}

static void *idle(void *arg)
{
	pause();
	return NULL;
}

static timer_t cpu_timer;

static void thread_timer(void)
{
	struct itimerspec far = {.it_value = {1000, 0}};

	victim_thread(idle, NULL);
	MUST(!timer_create(CLOCK_THREAD_CPUTIME_ID, NULL, &cpu_timer) &&
		!timer_settime(cpu_timer, 0, &far, NULL));
}

static void still_timer(void)
{
	struct itimerspec left;

	CHECK(!timer_gettime(cpu_timer, &left) && left.it_value.tv_sec, "timer");
}

static void io_ports(void)
{
	need(!ioperm(0x80, 1, 1), "no access to I/O ports");
}

static void *set_bits(void *arg)
{
	need(!prctl(PR_SET_SECUREBITS, 1L << 6 /* SECBIT_NO_CAP_AMBIENT_RAISE */),
		"needs root");
	*(atomic_bool *)arg = true;
	while (pause())
		;
	return NULL;
}

static void thread_securebits(void)
{
	static atomic_bool done;

	victim_thread(set_bits, &done);
	while (!done)
		usleep(500);
}

static int own_sem;

static void *use_own_undo(void *arg)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	MUST(!unshare(CLONE_SYSVSEM) && !semop(own_sem, &up, 1));
	*(atomic_bool *)arg = true;
	while (pause())
		;
	return NULL;
}

static void thread_undo(void)
{
	static atomic_bool done;

	own_sem = semget(IPC_PRIVATE, 1, 0600);
	MUST(own_sem >= 0);
	victim_thread(use_own_undo, &done);
	while (!done)
		usleep(500);
}

static void remove_sem(void)
{
	CHECK(semctl(own_sem, 0, GETVAL) == 1, "the semaphore");
	semctl(own_sem, 0, IPC_RMID);
}

static void *forbid_privileges(void *arg)
{
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	*(atomic_bool *)arg = true;
	while (pause())
		;
	return NULL;
}

static void thread_privileges(void)
{
	static atomic_bool done;

	victim_thread(forbid_privileges, &done);
	while (!done)
		usleep(500);
}

static int undo_with_child(void *ready)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	MUST(!semop(own_sem, &up, 1) && write(*(int *)ready, "", 1) == 1);
	return wait_for_end(NULL);
}

static void shared_undo(void)
{
	static char stack[64 * 1024];
	int ends[2];
	char c;

	own_sem = semget(IPC_PRIVATE, 1, 0600);
	MUST(own_sem >= 0 && !pipe(ends));
	child = clone(
		undo_with_child, stack + sizeof(stack), CLONE_SYSVSEM | SIGCHLD, &ends[1]);
	MUST(child > 0 && read(ends[0], &c, 1) == 1);
}

static void end_undo(void)
{
	remove_sem();
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child, "child");
}

/* So many that the kernel does not show them all in time. */
#define QUEUED 90000

static void queued_signals(void)
{
	struct rlimit limit = {QUEUED + 1000, QUEUED + 1000};
	sigset_t set;

	/* Only some may; there may be room without. */
	(void)setrlimit(RLIMIT_SIGPENDING, &limit);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
	for (int i = 0; i < QUEUED; i++) {
		union sigval value = {.sival_int = i};

		need(!sigqueue(getpid(), SIGRTMIN, value), "no room for signals");
	}
}

static void still_queued(void)
{
	struct timespec none = {0};
	siginfo_t info;
	sigset_t set;
	int i = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	while (sigtimedwait(&set, &info, &none) > 0 && info.si_value.sival_int == i)
		i++;
	CHECK(i == QUEUED, "signal %d", i);
}

static const struct kind kinds[] = {
	{"outside", outside, still_outside, 'd'},
	{"raw", raw, still_raw, 'd'},
	{"packet", packet, nothing, 'd'},
	{"vsock", vsock, nothing, 'd'},
	{"alg", alg, nothing, 'd'},
	{"multicast", multicast, nothing, 'd'},
	{"urgent", urgent, still_urgent, 'd'},
	{"headers", headers, nothing, 'd'},
	{"headers6", headers6, nothing, 'd'},
	{"filter", filter, nothing, 'd'},
	{"unaccepted", unaccepted, still_unaccepted, 'd'},
	{"unaccepted-tcp", unaccepted_tcp, still_unaccepted, 'd'},
	{"unaccepted-full", unaccepted_full, still_unaccepted_full, 'd'},
	{"io_uring", io_uring, still_waits_for_ring, 'd'},
	{"pipe", external_pipe, nothing, 'd'},
	{"packets-and-bytes", packets_and_bytes, still_packets, 'd'},
	{"lost-name", lost_name, nothing, 'd'},
	{"one-shot", one_shot, still_fired, 'd'},
	{"perf-event", perf_event, nothing, 'd'},
	{"bpf", bpf_map, nothing, 'd'},
	{"secret-memory", secret_memory, nothing, 'd'},
	{"name-space", name_space, nothing, 'd'},
	{"no-vdso", no_vdso, nothing, '-'},
	{"notify", notify, nothing, 'd'},
	{"broken-lease", broken_lease, nothing, 'd'},
	{"mapped-lease", mapped_lease, nothing, 'd'},
	{"terminal-external", terminal_external, nothing, 'd'},
	{"terminal-locked", terminal_locked, nothing, 'd'},
	{"terminal-status", terminal_status, still_status, 'd'},
	{"netlink-answer", netlink_answer, still_answer, 'd'},
	{"pidfd-outside", pidfd_outside, nothing, 'd'},
	{"foreign-owner", owner_outside, nothing, 'd'},
	{"removed-root", removed_root, nothing, '-'},
	{"file-of-outside", file_of_outside, nothing, 'd'},
	{"fifo-elsewhere", fifo_elsewhere, nothing, 'd'},
	{"sealed", sealed, nothing, 'r'},
	{"fanotify", fanotify_events, nothing, 'd'},
	{"fanotify-permissions", fanotify_permissions, nothing, 'd'},
	{"epoll-of-thread", epoll_of_thread, nothing, '-'},
	{"epoll-mounts", epoll_mounts, nothing, 'd'},
	{"clone-gap", shared_over_a_gap, end_gap, 'c'},
	{"userfaultfd", userfault, still_userfault, 'd'},
	{"device", device, still_mapped, 'r'},
	{"sysv-shm", sysv_shm, still_shm, 'r'},
	{"mqueue", message_queue, nothing, 'd'},
	{"seccomp", seccomp, still_seccomp, '-'},
	{"landlock", landlock, nothing, '-'},
	{"dispatch", dispatch, still_dispatched, '-'},
	{"ldt", ldt, still_ldt, '-'},
	{"thread-area", thread_area, nothing, '-'},
	{"thread-timer", thread_timer, still_timer, '-'},
	{"io-ports", io_ports, nothing, '-'},
	{"thread-undo", thread_undo, remove_sem, '-'},
	{"thread-securebits", thread_securebits, nothing, '-'},
	{"thread-privileges", thread_privileges, nothing, '-'},
	{"shared-undo", shared_undo, end_undo, 'c'},
	{"group-outside", group_outside, nothing, '-'},
	{"pid-namespace", pid_namespace_child, nothing, '-'},
	{"queued-signals", queued_signals, still_queued, '-'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
