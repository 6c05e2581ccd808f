/*
 * textures ROUNDS: arrays of all shapes in use the whole time while they are checkpointed and
 * restarted: read by textures, with filters and coordinates of all kinds, written by surfaces,
 * copied by calls and by a graph, mipmapped, and of memory. In each round some are destroyed
 * and made again in another order, so that numbers and handles are reused. Prints a checksum of
 * all that kernels have seen and of all contents.
 */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#include "t/gpu/gpu.h"

#define SIDE   64
#define COUNT  (SIDE * SIDE)
#define DEPTH  6 /* slices, layers, faces */
#define KINDS  6
#define EACH   5 /* textures of a kind */
#define LEVELS 4

static const struct {
	unsigned height, depth, flags;
} shapes[KINDS] = {
	{0, 0, 0},
	{SIDE, 0, cudaArraySurfaceLoadStore},
	{SIDE, DEPTH, cudaArraySurfaceLoadStore},
	{0, DEPTH, cudaArrayLayered},
	{SIDE, DEPTH, cudaArrayLayered | cudaArraySurfaceLoadStore},
	{SIDE, DEPTH, cudaArrayCubemap},
};

/* Eight bits of each sum are of the integer kind only: to the last bit. */
__global__ void look(cudaTextureObject_t t, int kind, uint32_t round, uint32_t *sums)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = i % SIDE + 0.25f, y = i / SIDE + 0.75f, seen = 0;

	if (kind == 0)
		seen = tex1D<float>(t, x);
	else if (kind == 1)
		seen = tex2D<float>(t, x, y);
	else if (kind == 2)
		seen = tex3D<float>(t, x, y, round % DEPTH + 0.5f);
	else if (kind == 3)
		seen = tex1DLayered<float>(t, x, round % DEPTH);
	else if (kind == 4)
		seen = tex2DLayered<float>(t, x, y, round % DEPTH);
	else
		seen = texCubemap<float>(t, x - 31, y - 31, (int)(round % 7) - 3);
	sums[i] = sums[i] * 31 + __float_as_uint(seen);
}

__global__ void look_at_memory(
	cudaTextureObject_t linear, cudaTextureObject_t pitched, uint32_t *sums)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	sums[i] = sums[i] * 33 + __float_as_uint(tex1Dfetch<float>(linear, i)) +
		  __float_as_uint(tex2D<float>(pitched, i % SIDE + 0.5f, i / SIDE + 0.5f));
}

__global__ void look_at_levels(cudaTextureObject_t t, float level, uint32_t *sums)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
	float seen =
		tex2DLod<float>(t, (i % SIDE + 0.3f) / SIDE, (i / SIDE + 0.6f) / SIDE, level);

	sums[i] = sums[i] * 29 + __float_as_uint(seen);
}

/* Of what is there, so that what was lost stays lost. */
__global__ void paint(cudaSurfaceObject_t s, int kind, uint32_t round)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, x = i % SIDE * 4, y = i / SIDE,
		 z = round % DEPTH;
	float v = 0;

	if (kind == 1)
		surf2Dread(&v, s, x, y);
	else if (kind == 2)
		surf3Dread(&v, s, x, y, z);
	else
		surf2DLayeredread(&v, s, x, y, z);
	v = v * 0.5f + (i * 7 + round) % 1001;
	if (kind == 1)
		surf2Dwrite(v, s, x, y);
	else if (kind == 2)
		surf3Dwrite(v, s, x, y, z);
	else
		surf2DLayeredwrite(v, s, x, y, z);
}

static cudaArray_t arrays[KINDS];
static cudaMipmappedArray_t mipmapped;
static cudaTextureObject_t textures[KINDS][EACH], of_levels, linear, pitched;
static cudaSurfaceObject_t surfaces[KINDS];
static float *memory, *pitched_memory;
static size_t pitch;
static uint32_t *sums, seed = 1;
static float host[COUNT * DEPTH];
static cudaGraph_t graph;
static cudaGraphExec_t executable;
static CUgraphNode node;

static uint32_t chance(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static cudaMemcpy3DParms whole(int kind, bool in)
{
	cudaMemcpy3DParms c = {};
	unsigned rows = shapes[kind].height ? SIDE : 1;
	cudaPitchedPtr h = make_cudaPitchedPtr(host, SIDE * 4, SIDE, rows);

	if (in)
		c.srcPtr = h, c.dstArray = arrays[kind];
	else
		c.srcArray = arrays[kind], c.dstPtr = h;
	c.extent = make_cudaExtent(SIDE, rows, shapes[kind].depth ? DEPTH : 1);
	c.kind = in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
	return c;
}

static void make_array(int kind)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaMemcpy3DParms c;

	OK(cudaMalloc3DArray(&arrays[kind], &format,
		make_cudaExtent(SIDE, shapes[kind].height, shapes[kind].depth),
		shapes[kind].flags));
	for (int i = 0; i < COUNT * DEPTH; i++)
		host[i] = chance(1 << 20) * 0.125f;
	c = whole(kind, true);
	OK(cudaMemcpy3D(&c));
}

static cudaTextureObject_t make_texture(int kind, int variant)
{
	cudaResourceDesc r = {};
	cudaTextureDesc t = {};
	cudaTextureObject_t texture;

	r.resType = cudaResourceTypeArray;
	r.res.array.array = arrays[kind];
	t.filterMode = variant & 1 ? cudaFilterModeLinear : cudaFilterModePoint;
	t.addressMode[0] = variant & 2 ? cudaAddressModeBorder : cudaAddressModeClamp;
	t.addressMode[1] = t.addressMode[2] = t.addressMode[0];
	t.borderColor[0] = variant;
	OK(cudaCreateTextureObject(&texture, &r, &t, NULL));
	return texture;
}

static void make_kind(int kind)
{
	cudaResourceDesc r = {};

	make_array(kind);
	for (int i = 0; i < EACH; i++)
		textures[kind][i] = make_texture(kind, i);
	r.resType = cudaResourceTypeArray;
	r.res.array.array = arrays[kind];
	if (shapes[kind].flags & cudaArraySurfaceLoadStore)
		OK(cudaCreateSurfaceObject(&surfaces[kind], &r));
}

static void end_kind(int kind)
{
	for (int i = 0; i < EACH; i++)
		OK(cudaDestroyTextureObject(textures[kind][i]));
	if (shapes[kind].flags & cudaArraySurfaceLoadStore)
		OK(cudaDestroySurfaceObject(surfaces[kind]));
	OK(cudaFreeArray(arrays[kind]));
}

static void make_levels(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc r = {};
	cudaTextureDesc t = {};
	cudaArray_t level;

	OK(cudaMallocMipmappedArray(
		&mipmapped, &format, make_cudaExtent(SIDE, SIDE, 0), LEVELS));
	for (int i = 0; i < LEVELS; i++) {
		for (int j = 0; j < COUNT; j++)
			host[j] = chance(1 << 16);
		OK(cudaGetMipmappedArrayLevel(&level, mipmapped, i));
		OK(cudaMemcpy2DToArray(level, 0, 0, host, (SIDE >> i) * 4, (SIDE >> i) * 4,
			SIDE >> i, cudaMemcpyHostToDevice));
	}
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = mipmapped;
	t.normalizedCoords = 1;
	t.filterMode = t.mipmapFilterMode = cudaFilterModeLinear;
	t.maxMipmapLevelClamp = LEVELS - 1;
	OK(cudaCreateTextureObject(&of_levels, &r, &t, NULL));
}

static void make_in_memory(void)
{
	cudaResourceDesc r = {};
	cudaTextureDesc t = {};

	OK(cudaMalloc(&memory, COUNT * 4));
	OK(cudaMallocPitch(&pitched_memory, &pitch, SIDE * 4, SIDE));
	for (int i = 0; i < COUNT; i++)
		host[i] = chance(1 << 20);
	OK(cudaMemcpy(memory, host, COUNT * 4, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2D(
		pitched_memory, pitch, host, SIDE * 4, SIDE * 4, SIDE, cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = memory;
	r.res.linear.desc = cudaCreateChannelDesc<float>();
	r.res.linear.sizeInBytes = COUNT * 4;
	OK(cudaCreateTextureObject(&linear, &r, &t, NULL));
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D.devPtr = pitched_memory;
	r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	r.res.pitch2D.width = r.res.pitch2D.height = SIDE;
	r.res.pitch2D.pitchInBytes = pitch;
	OK(cudaCreateTextureObject(&pitched, &r, &t, NULL));
}

/* From an array into memory that a texture shows, and to another array; both are never freed. */
static void make_graph(void)
{
	cudaGraphNode_t first, second;
	cudaMemcpy3DParms c = {};

	OK(cudaGraphCreate(&graph, 0));
	c.srcArray = arrays[1];
	c.dstPtr = make_cudaPitchedPtr(memory, SIDE * 4, SIDE, SIDE);
	c.extent = make_cudaExtent(SIDE, SIDE, 1);
	c.kind = cudaMemcpyDeviceToDevice;
	OK(cudaGraphAddMemcpyNode(&first, graph, NULL, 0, &c));
	c = {};
	c.srcArray = arrays[1];
	c.dstArray = arrays[4];
	c.dstPos = make_cudaPos(0, 0, 2);
	c.extent = make_cudaExtent(SIDE, SIDE, 1);
	c.kind = cudaMemcpyDeviceToDevice;
	OK(cudaGraphAddMemcpyNode(&second, graph, &first, 1, &c));
	OK(cudaGraphInstantiate(&executable, graph, 0));
	node = second;
}

static void check_handles(void)
{
	cudaMemcpy3DParms c = {};
	cudaResourceDesc r = {};
	cudaExtent e;
	cudaChannelFormatDesc format;
	unsigned flags;

	OK(cudaGraphMemcpyNodeGetParams(node, &c));
	OK(cudaGetTextureObjectResourceDesc(&r, textures[5][1]));
	OK(cudaArrayGetInfo(&format, &e, &flags, arrays[2]));
	if (c.srcArray != arrays[1] || c.dstArray != arrays[4] ||
		r.res.array.array != arrays[5] || e.depth != DEPTH || format.x != 32) {
		printf("a handle or a description is another\n");
		exit(1);
	}
}

static void turn(uint32_t round)
{
	int kind = chance(KINDS);

	for (int i = 0; i < KINDS; i++)
		look<<<COUNT / 256, 256>>>(textures[i][chance(EACH)], i, round, sums);
	for (int i = 1; i < KINDS; i++)
		if (surfaces[i])
			paint<<<COUNT / 256, 256>>>(surfaces[i], i, round);
	OK(cudaGraphLaunch(executable, 0));
	look_at_memory<<<COUNT / 256, 256>>>(linear, pitched, sums);
	look_at_levels<<<COUNT / 256, 256>>>(of_levels, round % 7 * 0.5f, sums);
	OK(cudaGetLastError());
	if (round % 16)
		return;
	OK(cudaDeviceSynchronize());
	check_handles();
	if (kind != 1 && kind != 4) {
		end_kind(kind);
		make_kind(kind);
	}
	kind = chance(KINDS);
	OK(cudaDestroyTextureObject(textures[kind][round / 16 % EACH]));
	textures[kind][round / 16 % EACH] = make_texture(kind, chance(4));
}

static uint32_t add(uint32_t sum, const void *data, size_t size)
{
	for (size_t i = 0; i < size / 4; i++)
		sum = sum * 31 + ((const uint32_t *)data)[i];
	return sum;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? atoi(argv[1]) : 1000, sum = 0;
	cudaMemcpy3DParms c;

	OK(cudaMalloc(&sums, COUNT * 4));
	OK(cudaMemset(sums, 0, COUNT * 4));
	for (int i = 0; i < KINDS; i++)
		make_kind(i);
	make_levels();
	make_in_memory();
	make_graph();
	printf("made\n");
	fflush(stdout);
	for (uint32_t i = 0; i < rounds; i++)
		turn(i);
	OK(cudaMemcpy(host, sums, COUNT * 4, cudaMemcpyDeviceToHost));
	printf("seen %08x\n", add(sum, host, COUNT * 4));
	for (int i = 0; i < KINDS; i++) {
		memset(host, 0, sizeof(host));
		c = whole(i, false);
		OK(cudaMemcpy3D(&c));
		printf("array %d %08x\n", i, add(0, host, sizeof(host)));
	}
	return 0;
}
