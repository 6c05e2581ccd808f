/* User objects, and functions of the program that the driver calls for log messages and asynchronous
 * notifications. A restart does not make them again yet, so a checkpoint is refused while one exists. */
#include "stubs/cuda/graphs.h"

#define CU_GRAPH_USER_OBJECT_MOVE 1

/* The program's own references: references of graphs go with the graphs, which are counted as well.
 * An object is there for the first of them; its value is how many more. */
static void count_references(void *real, int64_t change)
{
	struct object *o = object_find(CUDA_USER_OBJECT, real);

	if (!o && change > 0 && !object_lost(CUDA_USER_OBJECT, real)) {
		o = object_find(CUDA_USER_OBJECT, real);
		change--;
	}
	if (o && (int64_t)__atomic_add_fetch(&o->value, change, __ATOMIC_RELAXED) < 0)
		object_kill(o);
}

int body_cuUserObjectCreate(
	void **object, void *data, void *destroy, unsigned references, unsigned flags)
{
	int r = real_cuUserObjectCreate(
		object, data, crossing_callback_pointer(destroy), references, flags);

	if (!r)
		r = object_lost(CUDA_USER_OBJECT, *object);
	if (!r)
		count_references(*object, (int64_t)references - 1);
	return r;
}

int body_cuUserObjectRetain(void *object, unsigned count)
{
	int r = real_cuUserObjectRetain(object, count);

	if (!r)
		count_references(object, count);
	return r;
}

/* Before the driver may give the same handle out again, to another thread. */
int body_cuUserObjectRelease(void *object, unsigned count)
{
	int r;

	count_references(object, -(int64_t)count);
	r = real_cuUserObjectRelease(object, count);
	if (r)
		count_references(object, count);
	return r;
}

int body_cuGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags)
{
	int r = real_cuGraphRetainUserObject(graph, object, count, flags);

	if (!r && flags & CU_GRAPH_USER_OBJECT_MOVE)
		count_references(object, -(int64_t)count);
	if (!r)
		graph_refer(graph_argument(CUDA_GRAPH, graph), count);
	return r;
}

int body_cuGraphReleaseUserObject(void *graph, void *object, unsigned count)
{
	int r = real_cuGraphReleaseUserObject(graph, object, count);

	if (!r)
		graph_refer(graph_argument(CUDA_GRAPH, graph), -(int64_t)count);
	return r;
}

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
