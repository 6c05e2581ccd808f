/*
 * cpu.c - a table of the features that programs choose by, read by CPUID, and compared with
 * the features in an image; the size and parts of XSAVE areas.
 */
#include "supervisor/state/cpu.h"

#include <cpuid.h>
#include <string.h>

#include "lib/util.h"
#include "lib/xcr0.h"

/* Word, bit, and the name that /proc/cpuinfo uses (Intel SDM volume 2, CPUID). Bits that no
 * program sees at work (virtual machines, power, debugging) are left out. */
static const struct {
	uint8_t word, bit;
	const char *name;
} features[] = {
	{0, 0, "sse3"},
	{0, 1, "pclmulqdq"},
	{0, 9, "ssse3"},
	{0, 12, "fma"},
	{0, 13, "cx16"},
	{0, 19, "sse4_1"},
	{0, 20, "sse4_2"},
	{0, 22, "movbe"},
	{0, 23, "popcnt"},
	{0, 25, "aes"},
	{0, 26, "xsave"},
	{0, 28, "avx"},
	{0, 29, "f16c"},
	{0, 30, "rdrand"},
	{1, 4, "tsc"},
	{1, 8, "cx8"},
	{1, 15, "cmov"},
	{1, 23, "mmx"},
	{1, 24, "fxsr"},
	{1, 25, "sse"},
	{1, 26, "sse2"},
	{2, 0, "fsgsbase"},
	{2, 3, "bmi1"},
	{2, 4, "hle"},
	{2, 5, "avx2"},
	{2, 8, "bmi2"},
	{2, 9, "erms"},
	{2, 11, "rtm"},
	{2, 16, "avx512f"},
	{2, 17, "avx512dq"},
	{2, 18, "rdseed"},
	{2, 19, "adx"},
	{2, 21, "avx512ifma"},
	{2, 23, "clflushopt"},
	{2, 24, "clwb"},
	{2, 26, "avx512pf"},
	{2, 27, "avx512er"},
	{2, 28, "avx512cd"},
	{2, 29, "sha_ni"},
	{2, 30, "avx512bw"},
	{2, 31, "avx512vl"},
	{3, 1, "avx512vbmi"},
	{3, 4, "ospke"},
	{3, 5, "waitpkg"},
	{3, 6, "avx512_vbmi2"},
	{3, 8, "gfni"},
	{3, 9, "vaes"},
	{3, 10, "vpclmulqdq"},
	{3, 11, "avx512_vnni"},
	{3, 12, "avx512_bitalg"},
	{3, 14, "avx512_vpopcntdq"},
	{3, 22, "rdpid"},
	{3, 27, "movdiri"},
	{3, 28, "movdir64b"},
	{4, 2, "avx512_4vnniw"},
	{4, 3, "avx512_4fmaps"},
	{4, 4, "fsrm"},
	{4, 8, "avx512_vp2intersect"},
	{4, 14, "serialize"},
	{4, 22, "amx_bf16"},
	{4, 23, "avx512_fp16"},
	{4, 24, "amx_tile"},
	{4, 25, "amx_int8"},
	{5, 4, "avx_vnni"},
	{5, 5, "avx512_bf16"},
	{5, 10, "fzrm"},
	{5, 11, "fsrs"},
	{5, 12, "fsrc"},
	{5, 23, "avx_ifma"},
	{6, 0, "lahf_lm"},
	{6, 5, "abm"},
	{6, 6, "sse4a"},
	{6, 8, "3dnowprefetch"},
	{6, 11, "xop"},
	{6, 16, "fma4"},
	{6, 21, "tbm"},
	{7, 27, "rdtscp"},
	{7, 29, "lm"},
};

void cpu_features(uint32_t words[CPU_WORDS], uint64_t *xfeatures)
{
	uint32_t raw[CPU_WORDS] = {0}, mask[CPU_WORDS] = {0}, eax = 0, ebx;

	__get_cpuid(1, &eax, &ebx, &raw[0], &raw[1]);
	__get_cpuid_count(7, 0, &eax, &raw[2], &raw[3], &raw[4]);
	if (eax >= 1) {
		uint32_t unused[3];

		__get_cpuid_count(7, 1, &raw[5], &unused[0], &unused[1], &unused[2]);
	}
	__get_cpuid(0x80000001, &eax, &ebx, &raw[6], &raw[7]);
	*xfeatures = xcr0_read(raw[0]);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++)
		mask[features[i].word] |= 1u << features[i].bit;
	for (int i = 0; i < CPU_WORDS; i++)
		words[i] = raw[i] & mask[i];
}

uint32_t cpu_xsave_size(void)
{
	uint32_t eax, size = 0, ecx, edx;

	return __get_cpuid_count(0xd, 0, &eax, &size, &ecx, &edx) ? size : 0;
}

int cpu_check(const uint32_t words[CPU_WORDS], uint64_t xfeatures, struct err *e)
{
	cleanup_buf struct buf missing = {0};
	uint32_t here[CPU_WORDS];
	uint64_t xfeatures_here;

	cpu_features(here, &xfeatures_here);
	for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
		uint32_t bit = 1u << features[i].bit;

		if (words[features[i].word] & bit & ~here[features[i].word])
			buf_printf(&missing, " %s", features[i].name);
	}
	if (missing.len)
		return err_set(e, 0,
			"this processor lacks features that the program was started with:%.*s",
			(int)missing.len, (char *)missing.data);
	if (xfeatures & ~xfeatures_here)
		return err_set(e, 0,
			"this processor or kernel lacks register state that the program was "
			"started with (XCR0 %#lx, here %#lx)",
			(unsigned long)xfeatures, (unsigned long)xfeatures_here);
	return 0;
}

char *cpu_model(void)
{
	cleanup_file FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !value)
			continue;
		value[strcspn(value, "\n")] = 0;
		return xstrdup(value + 2);
	}
	return xstrdup("unknown");
}
