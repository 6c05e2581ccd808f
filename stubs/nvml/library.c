/* libnvidia-ml.so.1 of the upper half. All of it passes through: it would open the driver's
 * descriptors in the upper half otherwise. */
#include "stubs/library.h"

enum {
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
};

enum {
#define CALL(name, class, how, registers, stack, floats) INDEX_##name,
#include "nvml.calls.h"
#undef CALL
	CALL_COUNT,
};

STUB_LIBRARY(nvml, "libnvidia-ml.so.1", CALL_COUNT, NVML_ERROR_UNINITIALIZED,
	NVML_ERROR_FUNCTION_NOT_FOUND);

/* No row is of class unsupported. */
STUB_HIDDEN int nvml_refused(unsigned index);
int nvml_refused(unsigned index)
{
	return NVML_ERROR_NOT_SUPPORTED;
}
