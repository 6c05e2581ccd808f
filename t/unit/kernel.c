/* Which kernels are recent enough (lib/kernel_release.h). */
#include "lib/kernel_release.h"
#include "lib/util.h"
#include "t/unit/tap.h"

int main(void)
{
	static const char *const old[] = {"5.13.0-21-generic", "5.10.0-32-amd64",
		"4.18.0-553.el8.x86_64", "3.10.0", "2.6.32"};
	static const char *const recent[] = {"5.14.0-427.el9.x86_64", "5.15.0",
		"6.1.0-56-amd64", "6.12", "10.0.0", "not known"};

	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		ok(!release_is_at_least(old[i], 5, 14), "%s is before 5.14", old[i]);
	for (size_t i = 0; i < ARRAY_SIZE(recent); i++)
		ok(release_is_at_least(recent[i], 5, 14), "%s is not", recent[i]);
	ok(*kernel_release() && !strchr(kernel_release(), '\n'), "this one is '%s'",
		kernel_release());
	return done_testing();
}
