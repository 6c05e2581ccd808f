/*
 * devices.c - initialisation, and the devices that CUDA_VISIBLE_DEVICES leaves visible.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#include "shared/cuda/device_uuid.h"
#include "t/sim/device.h"
#include "t/sim/sim.h"

#define SHARES_BY_FILES                                                                        \
	103 /* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */

#define PCI_BUS 33 /* CU_DEVICE_ATTRIBUTE_PCI_BUS_ID */

/* What it says that it is for. */
#ifndef SIM_VERSION
#define SIM_VERSION "13000"
#endif

SIM_EXPORT int cuInit(unsigned flags);
SIM_EXPORT int cuDriverGetVersion(int *version);
SIM_EXPORT int cuGetErrorString(int error, const char **text);
SIM_EXPORT int cuGetErrorName(int error, const char **text);
SIM_EXPORT int cuDeviceGetCount(int *count);
SIM_EXPORT int cuDeviceGet(int *device, int ordinal);
SIM_EXPORT int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);
SIM_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
SIM_EXPORT int cuDeviceGetName(char *name, int size, int device);
SIM_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
SIM_EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer);
SIM_EXPORT int cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value);
SIM_EXPORT int cuDeviceSetGraphMemAttribute(int device, int attribute, const uint64_t *value);
SIM_EXPORT int cuDevSmResourceSplitByCount(void *result, unsigned *groups, const void *input,
	void *remaining, unsigned flags, unsigned least);

static int initialised_by; /* process id */

int sim_ready(void)
{
	return initialised_by == getpid() ? 0 : SIM_NOT_INITIALIZED;
}

static struct {
	int given; /* what follows is there */
	int count, list[SIM_DEVICES];
} visible; /* as the environment says when the driver is initialised */

static int machine_devices(void)
{
	int count = atoi(sim_machine("devices", "1"));

	return count < SIM_DEVICES ? count : SIM_DEVICES;
}

static int device_count(void)
{
	int count = machine_devices(), n = 0;

	if (!visible.given)
		return count;
	while (n < visible.count && visible.list[n] < count)
		n++;
	return n;
}

/* The device itself, of which there may be others in its place on another machine, or in another order:
 * "order" of the machine file has a digit for each. */
static int machine_device(int number)
{
	return sim_machine("order", "0123")[number] - '0';
}

static int device_itself(int device)
{
	return machine_device(visible.given ? visible.list[device] : device);
}

/* As real identifiers, they differ in the first bytes. */
static void get_uuid(unsigned char uuid[16], int itself)
{
	memcpy(uuid, "simulated device", 16);
	uuid[0] += itself;
}

/* One entry of CUDA_VISIBLE_DEVICES; -1: there is none such. */
static int find_visible(const char *entry)
{
	unsigned char uuid[16];
	char text[DEVICE_UUID_TEXT];

	if (*entry >= '0' && *entry <= '9')
		return atoi(entry) < machine_devices() ? atoi(entry) : -1;
	for (int i = 0; i < machine_devices(); i++) {
		get_uuid(uuid, machine_device(i));
		device_uuid_text(uuid, sim_machine("name", ""), text);
		if (!strncmp(text, entry, strcspn(entry, ",")))
			return i;
	}
	return -1;
}

/* What comes behind an entry that is wrong is not visible either. */
static void read_visible(const char *entry)
{
	visible.given = entry != NULL;
	for (visible.count = 0; entry && *entry && visible.count < SIM_DEVICES;) {
		int number = find_visible(entry);

		if (number < 0)
			return;
		visible.list[visible.count++] = number;
		entry = strchr(entry, ',') ? strchr(entry, ',') + 1 : NULL;
	}
}

/* 0, or what is wrong with it. */
int sim_check_device(int device)
{
	int r = sim_ready();

	return r ? r : device >= 0 && device < device_count() ? 0 : SIM_INVALID_DEVICE;
}

int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
	int r;

	SIM_ENTER();
	r = sim_check_device(device);
	if (!r)
		get_uuid(uuid, device_itself(device));
	return r;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	SIM_ENTER();
	*bytes = strtoul(sim_machine("memory_mib", "8192"), NULL, 10) << 20;
	return sim_check_device(device);
}

/* As the driver: it asks for an address by hint, and gives up when it gets another. */
static int reserve(void)
{
	void *wanted = (void *)0x200000000;

	if (mmap(wanted, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != wanted)
		return SIM_OUT_OF_MEMORY;
	if (munmap(wanted, 1 << 20))
		return SIM_OUT_OF_MEMORY;
	/* And this stays, in children of fork, too. */
	return mmap(wanted, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == wanted
		       ? 0
		       : SIM_OUT_OF_MEMORY;
}

/* Milliseconds more than this driver needs. */
static void take_time(void)
{
	long ms = atol(sim_machine("start_ms", "0"));
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t))
		;
}

#define SEGMENT (3ul << 12)

/* As UCX has them for messages: a segment that stays, after a segment that has gone. */
static int attach_segments(void)
{
	for (int i = 0; i < 2; i++) {
		int id = shmget(IPC_PRIVATE, SEGMENT, IPC_CREAT | 0600);
		void *p = id < 0 ? NULL : shmat(id, NULL, 0);

		if (!p)
			return 0; /* none is available here */
		(void)shmctl(id, IPC_RMID, NULL);
		if (p == (void *)-1)
			return -1;
		memset(p, i, SEGMENT);
		if (!i && shmdt(p))
			return -1;
	}
	return 0;
}

int cuInit(unsigned flags)
{
	SIM_ENTER();
	take_time();
	if (flags)
		return SIM_INVALID_VALUE;
	if (initialised_by && initialised_by != getpid())
		return SIM_NOT_INITIALIZED; /* a child of fork, as with the driver */
	if (!initialised_by && (reserve() || attach_segments()))
		return SIM_OUT_OF_MEMORY;
	if (!initialised_by) {
		read_visible(getenv("CUDA_VISIBLE_DEVICES"));
		sim_work_in_background();
	}
	initialised_by = getpid();
	sim_shut_down_at_exit();
	return 0;
}

int cuDriverGetVersion(int *version)
{
	SIM_ENTER();
	*version = atoi(sim_machine("version", SIM_VERSION));
	return 0;
}

int cuGetErrorString(int error, const char **text)
{
	SIM_ENTER();
	*text = error ? "an error of the simulated driver" : "no error";
	return 0;
}

int cuGetErrorName(int error, const char **text)
{
	SIM_ENTER();
	*text = error ? "SIM_ERROR" : "SIM_OK";
	return 0;
}

int cuDeviceGetCount(int *count)
{
	SIM_ENTER();
	*count = device_count();
	return sim_ready();
}

int cuDeviceGet(int *device, int ordinal)
{
	SIM_ENTER();
	if (sim_ready())
		return SIM_NOT_INITIALIZED;
	*device = ordinal;
	return sim_check_device(ordinal);
}

int cuDeviceGetName(char *name, int size, int device)
{
	SIM_ENTER();
	strncpy(name, sim_machine("name", "Simulated"), size);
	return sim_check_device(device);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	char key[32];
	int r;

	SIM_ENTER();
	r = sim_check_device(device);
	if (r)
		return r;
	snprintf(key, sizeof(key), "attribute%d", attribute);
	*value = attribute == SHARES_BY_FILES;
	if (attribute == PCI_BUS)
		*value = 0x10 + device_itself(device);
	if (*sim_machine(key, ""))
		*value = atoi(sim_machine(key, ""));
	return 0;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	SIM_ENTER();
	*can = device != peer;
	return sim_check_device(device) | sim_check_device(peer);
}

int cuDeviceSetGraphMemAttribute(int device, int attribute, const uint64_t *value)
{
	SIM_ENTER();
	return *value || !(attribute & 1) ? SIM_INVALID_VALUE : 0;
}

int cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value)
{
	SIM_ENTER();
	*value = strtoul(sim_machine("graph_memory", "0"), NULL, 10);
	return sim_check_device(device);
}

int cuDevSmResourceSplitByCount(void *result, unsigned *groups, const void *input,
	void *remaining, unsigned flags, unsigned least)
{
	SIM_ENTER();
	*groups = 1;
	return 0;
}
