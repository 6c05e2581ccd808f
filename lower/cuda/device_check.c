/*
 * device_check.c - the version of the driver, and what programs ask about devices, are compared
 * with what they were.
 *
 * Code for a device is chosen, and addresses are given out, by its model, so the same model is asked
 * for, unless the user has said otherwise (--gpu-other). Then what limits a launch must be no less, as
 * the program goes by what it was told before.
 */
#include "lower/cuda/device_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "shared/cuda/device_properties.h"
#include "shared/cuda/device_uuid.h"
#include "shared/records.h"

#define OTHER_HINT "(--gpu-other allows it)"

static int may_be_other(void)
{
	return table->order.gpu_choice & LOWER_GPU_OTHER;
}

int device_check_driver(const struct cuda_state *s)
{
	int version = 0, r = CUDA(cuDriverGetVersion, (int *))(&version), may_follow;

	if (r)
		return cuda_failed("cuDriverGetVersion", r);
	may_follow = version / 1000 == s->driver_version / 1000 && version > s->driver_version;
	if (version != s->driver_version && !(may_follow && may_be_other()))
		return agent_fail(
			"the driver here is for CUDA %d.%d, the program ran on one for "
			"CUDA %d.%d%s",
			version / 1000, version % 1000 / 10, s->driver_version / 1000,
			s->driver_version % 1000 / 10, may_follow ? " " OTHER_HINT : "");
	if (version != s->driver_version || RECORDS->another_driver)
		agent_notice("the GPU driver is another build than at the checkpoint (for CUDA "
			     "%d.%d; it was for %d.%d)",
			version / 1000, version % 1000 / 10, s->driver_version / 1000,
			s->driver_version % 1000 / 10);
	return 0;
}

static int look_at_device(struct cuda_device *d, unsigned ordinal)
{
	size_t memory = 0;
	int device, r = CUDA(cuDeviceGet, (int *, int))(&device, ordinal);

	if (!r)
		r = CUDA(cuDeviceGetName, (char *, int, int))(d->name, sizeof(d->name), device);
	if (!r)
		r = CUDA(cuDeviceGetUuid_v2, (uint8_t *, int))(d->uuid, device);
	if (!r)
		r = CUDA(cuDeviceTotalMem_v2, (size_t *, int))(&memory, device);
	d->name[sizeof(d->name) - 1] = 0;
	d->memory = memory;
	if (r)
		return cuda_failed("cuDeviceGetName", r);
	for (unsigned i = 0; i < DEVICE_PROPERTIES; i++) {
		r = CUDA(cuDeviceGetAttribute, (int *, int, int))(
			&d->properties[i], device_properties[i].attribute, device);
		if (r == 1) /* CUDA_ERROR_INVALID_VALUE: it does not know it */
			r = d->properties[i] = 0;
		if (r)
			return cuda_failed("cuDeviceGetAttribute", r);
	}
	return 0;
}

static int is_same_model(const struct cuda_device *a, const struct cuda_device *b)
{
	return !strncmp(a->name, b->name, sizeof(a->name)) && a->memory == b->memory;
}

static int is_same_device(const struct cuda_device *a, const struct cuda_device *b)
{
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

/* ---- what must not differ ---- */

static int capability(const struct cuda_device *d)
{
	return d->properties[PROPERTY_MAJOR] * 100 + d->properties[PROPERTY_MINOR];
}

static int check_capability(
	const struct cuda_device *here, const struct cuda_device *wanted, unsigned ordinal)
{
	if (capability(here) >= capability(wanted))
		return 0;
	return agent_fail("GPU %u here has compute capability %d.%d, the program ran on %d.%d",
		ordinal, capability(here) / 100, capability(here) % 100,
		capability(wanted) / 100, capability(wanted) % 100);
}

static int check_properties(
	const struct cuda_device *here, const struct cuda_device *wanted, unsigned ordinal)
{
	for (unsigned i = 0; i < DEVICE_PROPERTIES; i++) {
		const struct device_property *p = &device_properties[i];
		int is = here->properties[i], was = wanted->properties[i];

		if (p->rule == PROPERTY_SAME ? is == was
					     : p->rule != PROPERTY_NOT_LESS || is >= was)
			continue;
		return agent_fail("GPU %u here, \"%s\", has %d for \"%s\", the program was "
				  "told %d",
			ordinal, here->name, is, p->name, was);
	}
	return 0;
}

static int check_device(
	const struct cuda_device *here, const struct cuda_device *wanted, unsigned ordinal)
{
	if (may_be_other())
		return check_capability(here, wanted, ordinal) ||
				       check_properties(here, wanted, ordinal)
			       ? -1
			       : 0;
	if (is_same_model(here, wanted))
		return 0;
	return agent_fail("GPU %u here is \"%s\" with %lu MiB, the program ran on \"%s\" with "
			  "%lu MiB " OTHER_HINT,
		ordinal, here->name, here->memory >> 20, wanted->name, wanted->memory >> 20);
}

/* ---- which device is which ---- */

/* Where the @i-th is; -1: nowhere. Identifiers may be equal: those in their places are found there. */
static int find_device(
	const struct cuda_state *s, unsigned i, const struct cuda_device here[CUDA_DEVICES])
{
	if (is_same_device(&here[i], &s->devices[i]))
		return i;
	for (unsigned k = 0; k < s->device_count; k++)
		if (is_same_device(&here[k], &s->devices[i]))
			return k;
	return -1;
}

/* In all that a program may go by. */
static int is_alike(const struct cuda_device *a, const struct cuda_device *b)
{
	if (!is_same_model(a, b))
		return 0;
	for (unsigned i = 0; i < DEVICE_PROPERTIES; i++)
		if (device_properties[i].rule != PROPERTY_PCI &&
			a->properties[i] != b->properties[i])
			return 0;
	return 1;
}

static int are_alike(const struct cuda_state *s, const struct cuda_device here[CUDA_DEVICES])
{
	unsigned i = 0;

	while (i < s->device_count && is_alike(&here[i], &s->devices[i]))
		i++;
	return i == s->device_count;
}

/* Enough of an identifier for the driver to know the device by. */
#define UUID_SHORT 12
#define MAP_TEXT   (LOWER_DEVICES * (UUID_SHORT + 4))

/* The devices are those of the program, in another order: the map that gives each its place. */
static int order_map(const struct cuda_state *s, const struct cuda_device here[CUDA_DEVICES],
	char map[MAP_TEXT])
{
	char uuid[DEVICE_UUID_TEXT];
	int moved = 0;
	size_t n = 0;

	for (unsigned i = 0; i < s->device_count; i++) {
		int at = find_device(s, i, here);

		if (at < 0)
			return 0;
		moved |= at != (int)i;
		device_uuid_text(s->devices[i].uuid, s->devices[i].name, uuid);
		if (n < MAP_TEXT)
			n += snprintf(map + n, MAP_TEXT - n, "%s%u:%.*s", i ? "," : "", i,
				UUID_SHORT, uuid);
	}
	return moved;
}

/* What goes from one to the other among alike ones is told. 1: and nothing else is to be told. */
static int check_order(const struct cuda_state *s, const struct cuda_device here[CUDA_DEVICES])
{
	char map[MAP_TEXT] = "";

	if ((table->order.gpu_choice & LOWER_GPU_MAPPED) || !order_map(s, here, map))
		return 0;
	if (!are_alike(s, here))
		return agent_fail(
			"the program's GPUs are here in another order: each is as it was with "
			"--gpu-map=%s",
			map);
	agent_notice("the program's GPUs are here in another order, and it goes on with equal "
		     "ones in "
		     "their places: each is as it was with --gpu-map=%s",
		map);
	return 1;
}

/* ---- what is told ---- */

struct difference {
	char text[600];
	size_t length;
};

static void add(struct difference *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct difference *d, const char *format, ...)
{
	size_t room = sizeof(d->text) - d->length;
	va_list ap;
	int n;

	va_start(ap, format);
	n = snprintf(d->text + d->length, room, "%s", d->length ? ", " : "");
	d->length += n;
	room -= n;
	n = vsnprintf(d->text + d->length, room, format, ap);
	va_end(ap);
	d->length += n < (int)room ? n : (int)room - 1;
}

static void add_identity(
	struct difference *d, const struct cuda_device *here, const struct cuda_device *was)
{
	const int *a = here->properties, *b = was->properties;
	char now[DEVICE_UUID_TEXT], before[DEVICE_UUID_TEXT];

	if (!is_same_device(here, was)) {
		device_uuid_text(here->uuid, here->name, now);
		device_uuid_text(was->uuid, was->name, before);
		add(d, "it is %s instead of %s", now, before);
	}
	if (a[PROPERTY_PCI_DOMAIN] != b[PROPERTY_PCI_DOMAIN] ||
		a[PROPERTY_PCI_BUS] != b[PROPERTY_PCI_BUS] ||
		a[PROPERTY_PCI_DEVICE] != b[PROPERTY_PCI_DEVICE])
		add(d, "at PCI %04x:%02x:%02x instead of %04x:%02x:%02x",
			a[PROPERTY_PCI_DOMAIN], a[PROPERTY_PCI_BUS], a[PROPERTY_PCI_DEVICE],
			b[PROPERTY_PCI_DOMAIN], b[PROPERTY_PCI_BUS], b[PROPERTY_PCI_DEVICE]);
}

static void tell_differences(
	const struct cuda_device *here, const struct cuda_device *was, unsigned ordinal)
{
	struct difference d = {.length = 0};

	if (strncmp(here->name, was->name, sizeof(here->name)))
		add(&d, "\"%s\" instead of \"%s\"", here->name, was->name);
	add_identity(&d, here, was);
	if (capability(here) != capability(was))
		add(&d, "compute capability %d.%d instead of %d.%d", capability(here) / 100,
			capability(here) % 100, capability(was) / 100, capability(was) % 100);
	if (here->memory != was->memory)
		add(&d, "%lu MiB of memory instead of %lu", here->memory >> 20,
			was->memory >> 20);
	for (unsigned i = 0; i < DEVICE_PROPERTIES; i++)
		if (device_properties[i].rule == PROPERTY_TOLD &&
			here->properties[i] != was->properties[i])
			add(&d, "%d %s instead of %d", here->properties[i],
				device_properties[i].name, was->properties[i]);
	if (d.length)
		agent_notice(
			"GPU %u is not the one of the checkpoint: %s; the program may go by "
			"what it was told before",
			ordinal, d.text);
}

/* ---- */

static int check_count(const struct cuda_state *s)
{
	int count = 0, r = CUDA(cuDeviceGetCount, (int *))(&count);

	if (r)
		return cuda_failed("cuDeviceGetCount", r);
	if (count == (int)s->device_count)
		return 0;
	return agent_fail("the program had %u GPUs, here there are %d%s", s->device_count,
		count, count > (int)s->device_count ? " (--gpu-map says which to use)" : "");
}

static void take_over(struct cuda_device *to, const struct cuda_device *here)
{
	struct cuda_device d = *here;

	d.primary_flags = to->primary_flags;
	d.primary_flags_set = to->primary_flags_set;
	*to = d;
}

int device_check_all(struct cuda_state *s)
{
	static struct cuda_device here[CUDA_DEVICES];
	int version = 0, moved;

	if (check_count(s))
		return -1;
	memset(here, 0, sizeof(here));
	for (unsigned i = 0; i < s->device_count; i++)
		if (look_at_device(&here[i], i) || check_device(&here[i], &s->devices[i], i))
			return -1;
	moved = check_order(s, here);
	if (moved < 0)
		return -1;
	for (unsigned i = 0; i < s->device_count; i++) {
		if (!moved)
			tell_differences(&here[i], &s->devices[i], i);
		take_over(&s->devices[i], &here[i]);
	}
	/* It has answered before. */
	if (!CUDA(cuDriverGetVersion, (int *))(&version))
		s->driver_version = version;
	return 0;
}
