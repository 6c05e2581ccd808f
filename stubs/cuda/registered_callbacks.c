/* Functions of the program that the driver calls for log messages and asynchronous notifications. A restart does not register
 * them again yet, so a checkpoint is refused while one is. */
#include "stubs/cuda/objects.h"

int body_cuLogsRegisterCallback(void *function, void *data, void **handle)
{
	int r = real_cuLogsRegisterCallback(crossing_callback_pointer(function), data, handle);

	return r ? r : object_lost(CUDA_LOG_CALLBACK, *handle);
}

int body_cuDeviceRegisterAsyncNotification(
	int device, void *function, void *data, void **handle)
{
	int r = real_cuDeviceRegisterAsyncNotification(
		device, crossing_callback_pointer(function), data, handle);

	return r ? r : object_lost(CUDA_ASYNC_CALLBACK, *handle);
}
