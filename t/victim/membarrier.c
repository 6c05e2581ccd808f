/* Registrations for membarrier(2): without them its calls fail with EPERM. */
#include <linux/membarrier.h>

#include "victim.h"

static int barrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

void victim_hurt(void)
{
	/* Only a new program is without. */
	setenv("MEMBARRIER_HURT", "1", 1);
	execl("/proc/self/exe", "membarrier", NULL);
}

static void check_barriers(void)
{
	CHECK(!barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED), "private: %s", strerror(errno));
	CHECK(!barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE), "of the core: %s",
		strerror(errno));
	/* What was not registered for is not there afterwards either. */
	CHECK(barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ) == -1 && errno == EPERM,
		"of sequences, without a registration");
}

int main(void)
{
	if (getenv("MEMBARRIER_HURT")) {
		check_barriers();
		return victim_done();
	}
	if (barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ||
		barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE))
		victim_skip("no membarrier here");
	victim_ready();
	victim_wait();
	check_barriers();
	return victim_done();
}
