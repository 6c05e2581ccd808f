/* What the driver is to call when something happens, for as long as the object lives: not made
 * again yet. */
#include "stubs/cuda/objects.h"

int body_cuUserObjectCreate(
	void **object, void *data, void *destroy, unsigned references, unsigned flags)
{
	int r = real_cuUserObjectCreate(
		object, data, crossing_callback_pointer(destroy), references, flags);

	return r ? r : object_lost(CUDA_USER_OBJECT, *object, NULL);
}

int body_cuLogsRegisterCallback(void *function, void *data, void **handle)
{
	int r = real_cuLogsRegisterCallback(crossing_callback_pointer(function), data, handle);

	return r ? r : object_lost(CUDA_LOG_CALLBACK, *handle, NULL);
}

int body_cuDeviceRegisterAsyncNotification(
	int device, void *function, void *data, void **handle)
{
	int r = real_cuDeviceRegisterAsyncNotification(
		device, crossing_callback_pointer(function), data, handle);

	return r ? r : object_lost(CUDA_ASYNC_CALLBACK, *handle, NULL);
}
