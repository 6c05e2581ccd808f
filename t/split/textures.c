/*
 * Arrays of all shapes go on having their contents, mipmapped ones all levels, and textures and
 * surfaces their numbers, which kernels are given: also when others were made and destroyed in
 * between, in two contexts, and of memory. Copies in graphs go on copying arrays. A texture of
 * what has been destroyed keeps its number. With the argument `taken` the program has memory where
 * an image has the contents of arrays.
 */
#include <string.h>
#include <sys/mman.h>

#include "shared/cuda/array_params.h"
#include "shared/cuda/graph_params.h"
#include "shared/address_windows.h"
#include "t/split/driver_victim.h"

#define INVALID_HANDLE 400
#define HOST           1
#define UINT32         3
#define LAYERED        1
#define SURFACE        2
#define CUBEMAP        4
#define SPARSE         0x40
#define NV12           0xb0
#define UNORM_16X4     0xc5

int cuArray3DCreate_v2(void **, const void *);
int cuArray3DGetDescriptor_v2(void *, void *);
int cuMemcpy3D_v2(const void *);
int cuMemcpy3DAsync_v2(const void *, void *);
int cuMemcpy2D_v2(const void *);
int cuMemcpyHtoA_v2(void *, size_t, const void *, size_t);
int cuMemcpyAtoH_v2(void *, void *, size_t, size_t);
int cuMemcpy3DBatchAsync_v2(size_t, const void *, uint64_t, void *);
int cuTexObjectGetResourceDesc(struct resource *, uint64_t);
int cuTexObjectGetTextureDesc(void *, uint64_t);
int cuSurfObjectDestroy(uint64_t);
int cuSurfObjectGetResourceDesc(struct resource *, uint64_t);
int cuGraphMemcpyNodeGetParams(void *, void *);
int cuGraphExecMemcpyNodeSetParams(void *, void *, const void *, void *);

/* Larger than what the supervisor asks for at a time, with rows that end inside of blocks; and
 * all that is made differently. */
static const struct shape {
	struct array_description d;
	unsigned bytes; /* of an element */
} shapes[] = {
	{{100003, 0, 0, UINT32, 1, 0, 0}, 4},
	{{333, 1001, 0, UINT32, 4, 0, 0}, 16},
	{{33, 65, 129, UINT32, 2, 0, 0}, 8},
	{{1000, 0, 7, UINT32, 1, LAYERED, 0}, 4},
	{{100, 20, 5, 1, 4, LAYERED, 0}, 4},
	{{64, 64, 6, UINT32, 1, CUBEMAP, 0}, 4},
	{{64, 64, 12, 0x20, 1, CUBEMAP | LAYERED, 0}, 4},
	{{1024, 1024, 0, UINT32, 1, SURFACE, 0}, 4},
	{{64, 3, 0, UNORM_16X4, 4, 0, 0}, 8},
	{{7, 3, 0, 1, 1, 0, 0}, 1},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define LARGE  7 /* one that kernels look at */
#define COUNT  (1 << 20)

static void *primary, *other, *arrays[SHAPES], *zero, *sparse, *planar, *mipmapped, *level,
	*gone;
static CUdeviceptr memory, out;
static void *sample, *paint, *sample_other;
static uint64_t textures[12], surface, dangling, in_other[3], of_memory, of_freed, of_pinned;
static uint32_t *pinned;
static void *graph, *executable, *copy_node;
static uint32_t host[COUNT], back[COUNT];

void victim_hurt(void)
{
	OK(cuMemcpyHtoA_v2(arrays[9], 0, "x", 1));
}

/* ---- contents ---- */

static uint64_t rows(const struct array_description *d)
{
	return d->height ? d->height : 1;
}

static uint64_t slices(const struct array_description *d)
{
	return d->depth ? d->depth : 1;
}

static struct graph_memcpy whole(
	void *array, const struct array_description *d, unsigned bytes, void *data, int is_in)
{
	struct graph_memcpy_side a = {.type = COPY_OF_ARRAY, .array = array},
				 h = {.type = HOST,
					 .host = (uint64_t)data,
					 .pitch = d->width * bytes,
					 .height = rows(d)};

	return (struct graph_memcpy){
		is_in ? h : a, is_in ? a : h, d->width * bytes, rows(d), slices(d)};
}

static void fill(void *array, const struct array_description *d, unsigned bytes, unsigned seed)
{
	uint64_t size = d->width * bytes * rows(d) * slices(d);
	unsigned char *data = malloc(size);
	struct graph_memcpy c = whole(array, d, bytes, data, 1);

	for (uint64_t i = 0; i < size; i++)
		data[i] = i * 7 + i / 251 + seed;
	OK(cuMemcpy3D_v2(&c));
	free(data);
}

static void check_array(void *array, const struct array_description *d, unsigned bytes,
	unsigned seed, const char *what)
{
	uint64_t size = d->width * bytes * rows(d) * slices(d), i = 0;
	unsigned char *data = calloc(1, size);
	struct graph_memcpy c = whole(array, d, bytes, data, 0);

	OK(cuMemcpy3D_v2(&c));
	while (i < size && data[i] == (unsigned char)(i * 7 + i / 251 + seed))
		i++;
	CHECK(i == size, "%s %u: %d at %lu of %lu", what, seed, data[i], i, size);
	free(data);
}

/* ---- arrays ---- */

static void make_arrays(void)
{
	const struct array_description none = {1 << 20, 0, 0, 1, 1, 0, 0},
				       holes = {1024, 1024, 0, UINT32, 1, SPARSE, 0};
	void *spare[3];

	for (unsigned i = 0; i < SHAPES; i++) {
		OK(cuArray3DCreate_v2(&arrays[i], &shapes[i].d));
		fill(arrays[i], &shapes[i].d, shapes[i].bytes, i);
		if (i < 3)
			OK(cuArray3DCreate_v2(&spare[i], &shapes[i].d));
	}
	for (unsigned i = 0; i < 3; i++)
		OK(cuArrayDestroy(spare[i]));
	gone = spare[0];
	OK(cuArray3DCreate_v2(&zero, &none));
	OK(cuMemcpyHtoA_v2(zero, 0, calloc(1, 1 << 20), 1 << 20));
	OK(cuMemcpyHtoA_v2(zero, 500000, "some", 4));
	OK(cuArray3DCreate_v2(&sparse, &holes));
}

static void check_arrays(void)
{
	static char data[1 << 20];
	struct array_description d = {0};
	unsigned sum = 0;

	for (unsigned i = 0; i < SHAPES; i++) {
		OK(cuArray3DGetDescriptor_v2(&d, arrays[i]));
		CHECK(!memcmp(&d, &shapes[i].d, sizeof(d)), "array %u is another", i);
		check_array(arrays[i], &shapes[i].d, shapes[i].bytes, i, "array");
	}
	OK(cuMemcpyAtoH_v2(data, zero, 0, sizeof(data)));
	for (size_t i = 0; i < sizeof(data); i++)
		sum += data[i];
	CHECK(!memcmp(data + 500000, "some", 4) && sum == 's' + 'o' + 'm' + 'e', "sum %u", sum);
	OK(cuArray3DGetDescriptor_v2(&d, sparse));
	CHECK(d.flags == SPARSE, "flags %#x", d.flags);
	CHECK(cuArray3DGetDescriptor_v2(&d, gone) == INVALID_HANDLE, "it lives");
}

static const struct array_description blocks = {64, 30, 0, 0x91 /* BC1_UNORM */, 4, 0, 0},
				      as_copied = {16, 8, 0, 0, 0, 0, 0};
static void *compressed;

static const struct array_description luminance = {64, 32, 0, 1, 1, 0, 0},
				      chrominance = {32, 16, 0, 1, 2, 0, 0},
				      in_planes = {64, 32, 0, NV12, 3, 0, 0};

static void make_planes(void)
{
	void *plane;

	OK(cuArray3DCreate_v2(&compressed, &blocks));
	fill(compressed, &as_copied, 8, 52);
	OK(cuArray3DCreate_v2(&planar, &in_planes));
	OK(cuArrayGetPlane(&plane, planar, 0));
	fill(plane, &luminance, 1, 50);
	OK(cuArrayGetPlane(&plane, planar, 1));
	fill(plane, &chrominance, 2, 51);
}

static void check_planes(void)
{
	void *plane;

	check_array(compressed, &as_copied, 8, 52, "compressed");
	OK(cuArrayGetPlane(&plane, planar, 0));
	check_array(plane, &luminance, 1, 50, "plane");
	OK(cuArrayGetPlane(&plane, planar, 1));
	check_array(plane, &chrominance, 2, 51, "plane");
}

static const struct array_description small = {200, 100, 0, UINT32, 1, 0, 0};

static struct array_description at_level(unsigned n)
{
	return (struct array_description){small.width >> n ? small.width >> n : 1,
		small.height >> n ? small.height >> n : 1, 0, UINT32, 1, 0, 0};
}

static void make_levels(void)
{
	struct array_description d;
	void *l;

	OK(cuMipmappedArrayCreate(&mipmapped, &small, 8));
	OK(cuMipmappedArrayGetLevel(&level, mipmapped, 2));
	for (unsigned i = 0; i < 8; i++) {
		d = at_level(i);
		OK(cuMipmappedArrayGetLevel(&l, mipmapped, i));
		fill(l, &d, 4, 20 + i);
	}
}

static void check_levels(void)
{
	struct array_description d = at_level(2);
	void *l;

	check_array(level, &d, 4, 22, "a level by its handle");
	for (unsigned i = 0; i < 8; i++) {
		d = at_level(i);
		OK(cuMipmappedArrayGetLevel(&l, mipmapped, i));
		check_array(l, &d, 4, 20 + i, "level");
	}
	CHECK(cuArrayDestroy(level), "a level is destroyed");
}

/* ---- textures ---- */

static const char description[104] = {1, 2, 3};

static uint64_t texture_of(void *array)
{
	struct resource r = {.type = RESOURCE_ARRAY, .of.array = array};
	uint64_t number = 0;

	OK(cuTexObjectCreate((void **)&number, &r, description, NULL));
	return number;
}

static uint64_t texture_of_memory(CUdeviceptr address)
{
	struct resource r = {.type = RESOURCE_LINEAR, .of.linear = {address, UINT32, 1, 4096}};
	uint64_t number = 0;

	OK(cuTexObjectCreate((void **)&number, &r, description, NULL));
	return number;
}

static uint64_t surface_of(void *array)
{
	struct resource r = {.type = RESOURCE_ARRAY, .of.array = array};
	uint64_t number = 0;

	OK(cuSurfObjectCreate((void **)&number, &r));
	return number;
}

/* Numbers are left out at the beginning, in the middle and at the end. */
static void make_textures(void)
{
	struct resource r = {.type = RESOURCE_MIPMAPPED_ARRAY, .of.array = mipmapped};
	CUdeviceptr freed;
	void *array;

	for (unsigned i = 0; i < 6; i++)
		textures[i] = texture_of(arrays[LARGE]);
	surface = surface_of(arrays[LARGE]);
	OK(cuTexObjectCreate((void **)&textures[6], &r, description, NULL));
	textures[7] = texture_of(level);
	of_memory = texture_of_memory(memory);
	OK(cuMemHostAlloc((void **)&pinned, 4096 * 4, 0));
	for (unsigned i = 0; i < 4096; i++)
		pinned[i] = i * 11 + 6;
	of_pinned = texture_of_memory((CUdeviceptr)pinned);
	OK(cuMemAlloc_v2(&freed, 3 << 20));
	of_freed = texture_of_memory(freed);
	OK(cuMemFree_v2(freed));
	OK(cuArray3DCreate_v2(&array, &small));
	dangling = texture_of(array);
	OK(cuArrayDestroy(array));
	for (unsigned i = 8; i < 12; i++)
		textures[i] = texture_of(arrays[1]);
	OK(cuTexObjectDestroy((void *)textures[0]));
	OK(cuTexObjectDestroy((void *)textures[3]));
	OK(cuSurfObjectDestroy(textures[9])); /* the driver does not mind */
	OK(cuTexObjectDestroy((void *)textures[11]));
	OK(cuSurfObjectDestroy(surface_of(arrays[LARGE]))); /* in the first hole */
}

static void launch(void *function, uint64_t a, uint64_t b, uint64_t c, unsigned threads)
{
	OK(cuLaunchKernel(
		function, threads / 32, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&a, &b, &c}, NULL));
}

static void check_seen(void *function, uint64_t texture, uint64_t to, unsigned factor,
	unsigned plus, const char *what)
{
	unsigned i = 0;

	launch(function, to, texture, 1, 4096);
	OK(cuMemcpyDtoH_v2(back, to, 4096 * 4));
	while (i < 4096 && back[i] == i * factor + plus + 1)
		i++;
	CHECK(i == 4096, "%s shows %u at %u", what, back[i], i);
}

static void check_textures(unsigned round)
{
	struct resource r = {0};
	char d[104];

	launch(paint, surface, 3, round, 4096);
	for (unsigned i = 1; i < 6; i++)
		if (i != 3)
			check_seen(sample, textures[i], out, 3, round, "a texture");
	check_seen(sample, of_pinned, out, 11, 6, "a texture of pinned memory");
	OK(cuMemcpyDtoH_v2(back, memory, 4096));
	launch(sample, out, of_memory, 0, 1024);
	OK(cuMemcpyDtoH_v2(host, out, 4096));
	CHECK(!memcmp(host, back, 4096), "a texture of memory shows something else");
	OK(cuTexObjectGetTextureDesc(d, textures[8]));
	CHECK(!memcmp(d, description, sizeof(d)), "it is described in another way");
	OK(cuTexObjectGetResourceDesc(&r, textures[8]));
	CHECK(r.type == RESOURCE_ARRAY && r.of.array == arrays[1], "it is of %p", r.of.array);
	OK(cuTexObjectGetResourceDesc(&r, textures[6]));
	CHECK(r.of.array == mipmapped, "it is of %p, not %p", r.of.array, mipmapped);
	OK(cuTexObjectGetResourceDesc(&r, textures[7]));
	CHECK(r.of.array == level, "it is of %p, not %p", r.of.array, level);
	OK(cuSurfObjectGetResourceDesc(&r, surface));
	CHECK(r.of.array == arrays[LARGE], "it is of %p", r.of.array);
}

/* The same numbers, of other things. */
static void make_in_other(void)
{
	struct graph_memcpy c;
	void *array, *module;

	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&sample_other, module, "sample"));
	OK(cuArray3DCreate_v2(&array, &shapes[LARGE].d));
	for (unsigned i = 0; i < COUNT; i++)
		host[i] = i * 5 + 9;
	c = whole(array, &shapes[LARGE].d, 4, host, 1);
	OK(cuMemcpy3D_v2(&c));
	for (unsigned i = 0; i < 3; i++)
		in_other[i] = texture_of(array);
	CHECK(in_other[1] == textures[1], "%lu is not %lu", in_other[1], textures[1]);
	OK(cuTexObjectDestroy((void *)in_other[0]));
	OK(cuCtxPopCurrent_v2(&(void *){NULL}));
}

static void check_in_other(void)
{
	CUdeviceptr to;

	OK(cuCtxPushCurrent_v2(other));
	OK(cuMemAlloc_v2(&to, 4096 * 4));
	check_seen(sample_other, in_other[1], to, 5, 9, "a texture of another context");
	OK(cuMemFree_v2(to));
	OK(cuCtxPopCurrent_v2(&(void *){NULL}));
}

/* What was left out is free, and the lowest is given first. */
static void check_numbers(void)
{
	uint64_t number = texture_of(arrays[0]);

	CHECK(number == textures[0], "the next is %lu, not %lu", number, textures[0]);
	number = texture_of(arrays[0]);
	CHECK(number == textures[3], "the next is %lu, not %lu", number, textures[3]);
	OK(cuTexObjectDestroy((void *)dangling));
	OK(cuTexObjectDestroy((void *)of_freed));
	number = texture_of(arrays[0]);
	CHECK(number == of_freed, "the next is %lu, not %lu", number, of_freed);
	OK(cuSurfObjectDestroy(surface));
	CHECK(cuSurfObjectDestroy(surface), "a surface is destroyed twice");
}

/* ---- graphs ---- */

static void make_graph(void)
{
	struct graph_memcpy in = whole(arrays[2], &shapes[2].d, 8, host, 1),
			    from = whole(arrays[2], &shapes[2].d, 8, back, 0);
	void *first;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemcpyNode(&first, graph, NULL, 0, &in, primary));
	OK(cuGraphAddMemcpyNode(&copy_node, graph, &first, 1, &from, primary));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	from.from.array = arrays[5]; /* and is set back */
	from.width = 8, from.height = from.depth = 1;
	OK(cuGraphExecMemcpyNodeSetParams(executable, copy_node, &from, primary));
	from = whole(arrays[2], &shapes[2].d, 8, back, 0);
	OK(cuGraphExecMemcpyNodeSetParams(executable, copy_node, &from, primary));
}

static void check_graph(void)
{
	struct graph_memcpy c = {0};

	OK(cuGraphMemcpyNodeGetParams(copy_node, &c));
	CHECK(c.from.array == arrays[2], "a node copies %p, not %p", c.from.array, arrays[2]);
	for (unsigned i = 0; i < COUNT; i++)
		host[i] = i ^ 0x5555;
	memset(back, 0, sizeof(back));
	OK(cuGraphLaunch(executable, NULL));
	OK(cuCtxSynchronize());
	CHECK(!memcmp(host, back, 33 * 65 * 129 * 8ul), "a graph has copied something else");
}

/* Copies by other calls find the array as well. */
static void check_other_copies(void)
{
	struct {
		struct {
			uint32_t type, pad;
			uint64_t words[4];
		} from, to;
		uint64_t width, height, depth;
		uint32_t order, flags;
	} batch = {{2, 0, {(uint64_t)arrays[0]}}, {1, 0, {(uint64_t)back, 100, 1}}, 100, 1, 1,
		1, 0};
	/* CUDA_MEMCPY2D */
	uint64_t flat[16] = {0, 0, COPY_OF_ARRAY, 0, 0, (uint64_t)arrays[0], 0, 0, 0, HOST,
		(uint64_t)host, 0, 0, 400, 400, 1};

	OK(cuMemcpy3DBatchAsync_v2(1, &batch, 0, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemcpy2D_v2(flat));
	CHECK(!memcmp(host, back, 400), "two copies differ");
	flat[5] = (uint64_t)gone;
	CHECK(cuMemcpy2D_v2(flat) == INVALID_HANDLE, "it lives");
	flat[2] = HOST, flat[3] = (uint64_t)back, flat[6] = 400;
	OK(cuMemcpy2D_v2(flat)); /* what it says of an array does not matter */
}

static void check_all(unsigned round)
{
	if (round)
		check_arrays();
	check_planes();
	check_levels();
	check_textures(round);
	check_in_other();
	check_other_copies();
	check_graph();
}

/* Where the image is to have the contents of arrays. */
static void take_addresses(void)
{
	void *wanted = (void *)(ARRAYS_WINDOW + 4096);

	CHECK(mmap(wanted, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		      -1, 0) == wanted,
		"the addresses are in use");
}

int main(int argc, char **argv)
{
	void *module;

	if (argc > 1 && !strcmp(argv[1], "taken"))
		take_addresses();
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&sample, module, "sample"));
	OK(cuModuleGetFunction(&paint, module, "paint"));
	OK(cuMemAlloc_v2(&memory, 4096));
	OK(cuMemAlloc_v2(&out, 4096 * 4));
	OK(cuMemsetD32_v2(memory, 77, 1024));
	make_arrays();
	make_planes();
	make_levels();
	make_textures();
	make_in_other();
	make_graph();
	victim_ready();
	victim_wait();
	check_all(1);
	check_numbers();
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
	for (unsigned i = 0; i < SHAPES; i++)
		OK(cuArrayDestroy(arrays[i]));
	OK(cuMipmappedArrayDestroy(mipmapped));
	OK(cuCtxDestroy_v2(other));
	return victim_done();
}
