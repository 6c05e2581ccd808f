/*
 * device_properties.h - what programs ask about a device once and then go by: cuDeviceGetAttribute's
 * answers, which are recorded at the start and compared at a restart on another model.
 */
#ifndef SHARED_CUDA_DEVICE_PROPERTIES_H
#define SHARED_CUDA_DEVICE_PROPERTIES_H

#include "shared/cuda/cuda_state.h"

enum property_rule {
	PROPERTY_CAPABILITY, /* compared together, major version first: not less */
	PROPERTY_SAME,
	PROPERTY_NOT_LESS,
	PROPERTY_TOLD, /* the user is told */
	PROPERTY_PCI,  /* together: the user is told */
};

enum {
	PROPERTY_MAJOR,
	PROPERTY_MINOR,
	PROPERTY_PCI_DOMAIN,
	PROPERTY_PCI_BUS,
	PROPERTY_PCI_DEVICE
};

/* By position in cuda_device.properties. Names complete "has ... of 48". */
static const struct device_property {
	int attribute; /* CUdevice_attribute */
	enum property_rule rule;
	const char *name;
} device_properties[] = {
	[PROPERTY_MAJOR] = {75, PROPERTY_CAPABILITY, NULL},
	[PROPERTY_MINOR] = {76, PROPERTY_CAPABILITY, NULL},
	[PROPERTY_PCI_DOMAIN] = {50, PROPERTY_PCI, NULL},
	[PROPERTY_PCI_BUS] = {33, PROPERTY_PCI, NULL},
	[PROPERTY_PCI_DEVICE] = {34, PROPERTY_PCI, NULL},
	{10, PROPERTY_SAME, "warp size"},
	{14, PROPERTY_SAME, "alignment of textures"},
	{51, PROPERTY_SAME, "alignment of rows of textures"},
	{1, PROPERTY_NOT_LESS, "threads per block"},
	{2, PROPERTY_NOT_LESS, "threads per block in x"},
	{3, PROPERTY_NOT_LESS, "threads per block in y"},
	{4, PROPERTY_NOT_LESS, "threads per block in z"},
	{8, PROPERTY_NOT_LESS, "bytes of shared memory per block"},
	{97, PROPERTY_NOT_LESS, "bytes of shared memory per block on request"},
	{81, PROPERTY_NOT_LESS, "bytes of shared memory per multiprocessor"},
	{9, PROPERTY_NOT_LESS, "bytes of constant memory"},
	{12, PROPERTY_NOT_LESS, "registers per block"},
	{82, PROPERTY_NOT_LESS, "registers per multiprocessor"},
	{39, PROPERTY_NOT_LESS, "threads per multiprocessor"},
	{106, PROPERTY_NOT_LESS, "blocks per multiprocessor"},
	{83, PROPERTY_NOT_LESS, "support of managed memory"},
	{89, PROPERTY_NOT_LESS, "support of concurrent access to managed memory"},
	{88, PROPERTY_NOT_LESS, "support of access to pageable memory"},
	{95, PROPERTY_NOT_LESS, "support of cooperative launches"},
	{115, PROPERTY_NOT_LESS, "support of memory pools"},
	{16, PROPERTY_TOLD, "multiprocessors"},
	{38, PROPERTY_TOLD, "bytes of L2 cache"},
};

#define DEVICE_PROPERTIES (sizeof(device_properties) / sizeof(device_properties[0]))
_Static_assert(DEVICE_PROPERTIES <= CUDA_PROPERTIES, "");

#endif
