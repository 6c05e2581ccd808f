/* Scheduling of each thread: policy, priority, nice value, affinity, I/O priority, timer
 * slack, name. */
#include <linux/ioprio.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "victim.h"

static pthread_barrier_t before, after;
static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

/* struct sched_attr, which old headers lack. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static const struct attributes deadline = {.size = sizeof(deadline),
	.policy = 6 /* SCHED_DEADLINE */,
	.runtime = 2000000,
	.deadline = 40000000,
	.period = 50000000};

struct kept {
	struct attributes all;
	int policy, priority, nice, slack;
	long io;
	cpu_set_t cpus;
	char name[16];
};

static void look_at_thread(struct kept *k)
{
	struct sched_param p = {0};

	memset(k, 0, sizeof(*k));
	k->policy = sched_getscheduler(0);
	sched_getparam(0, &p);
	k->priority = p.sched_priority;
	k->nice = getpriority(PRIO_PROCESS, victim_tid());
	syscall(SYS_sched_getattr, 0, &k->all, sizeof(k->all), 0);
	k->slack = prctl(PR_GET_TIMERSLACK);
	k->io = syscall(SYS_ioprio_get, 1, 0);
	sched_getaffinity(0, sizeof(k->cpus), &k->cpus);
	prctl(PR_GET_NAME, k->name);
}

static void *thread(void *arg)
{
	size_t n = (size_t)arg;
	struct sched_param p = {0};
	struct kept was, is;
	cpu_set_t one;
	char name[16];

	snprintf(name, sizeof(name), "thread (%zu) x", n);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_TIMERSLACK, 1000000 * (n + 1));
	setpriority(PRIO_PROCESS, victim_tid(), 3 + n);
	syscall(SYS_ioprio_set, 1, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, n + 1));
	if (n == 0)
		sched_setscheduler(0, SCHED_BATCH, &p);
	if (n == 1)
		sched_setscheduler(0, SCHED_IDLE, &p);
	if (n == 2 && !geteuid()) {
		p.sched_priority = 5;
		sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &p);
	}
	if (n == 4 && !geteuid())
		syscall(SYS_sched_setattr, 0, &deadline, 0);
	if (n == 3) {
		CPU_ZERO(&one);
		CPU_SET(sched_getcpu(), &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	look_at_thread(&was);
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	if (spoil)
		setpriority(PRIO_PROCESS, victim_tid(), 10);
	look_at_thread(&is);
	CHECK(is.policy == was.policy, "thread %zu: policy %d, was %d", n, is.policy,
		was.policy);
	CHECK(is.priority == was.priority, "thread %zu: priority %d, was %d", n, is.priority,
		was.priority);
	CHECK(!memcmp(&is.all, &was.all, sizeof(is.all)),
		"thread %zu: attributes differ: %llu of %llu, was %llu of %llu", n,
		(long long)is.all.runtime, (long long)is.all.period, (long long)was.all.runtime,
		(long long)was.all.period);
	CHECK(is.nice == was.nice, "thread %zu: nice %d, was %d", n, is.nice, was.nice);
	CHECK(is.slack == was.slack, "thread %zu: timer slack %d, was %d", n, is.slack,
		was.slack);
	CHECK(is.io == was.io, "thread %zu: I/O priority %lx, was %lx", n, is.io, was.io);
	CHECK(CPU_EQUAL(&is.cpus, &was.cpus), "thread %zu: affinity has changed", n);
	CHECK(!strcmp(is.name, name), "thread %zu: name is '%s'", n, is.name);
	return NULL;
}

int main(void)
{
	pthread_t t[5];
	char name[16] = "";

	pthread_barrier_init(&before, NULL, 6);
	pthread_barrier_init(&after, NULL, 6);
	for (size_t i = 0; i < 5; i++)
		t[i] = victim_thread(thread, (void *)i);
	prctl(PR_SET_NAME, "main\n) R 1");
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&after);
	for (int i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	prctl(PR_GET_NAME, name);
	CHECK(!strcmp(name, "main\n) R 1"), "name of the process is '%s'", name);
	return victim_done();
}
