/*
 * netfilter_library.c - finds the addresses that the calls of netfilter_calls.S go by.
 */
#include "supervisor/socket/netfilter_library.h"

#include <dlfcn.h>
#include <string.h>

/* Of the library that we were compiled with the headers of: the Makefile asks it for its name. */
static const char soname[] = TRECR_NFTNL_SONAME;

/* In netfilter_calls.S. */
extern const char netfilter_names[];
extern void *netfilter_addresses[];

static const char *load_error(void)
{
	const char *text = dlerror();

	return text ? text : soname;
}

int netfilter_load(struct err *e)
{
	static void *library;
	size_t i = 0;

	if (library)
		return 0;
	library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(e, 0, "cannot load %s, which comes with the package libnftnl",
			load_error());
	/* Finds those of libmnl, too, which it is linked with. */
	for (const char *name = netfilter_names; *name; name += strlen(name) + 1) {
		netfilter_addresses[i] = dlsym(library, name);
		if (netfilter_addresses[i++])
			continue;
		err_set(e, 0, "cannot use libnftnl: %s", load_error());
		(void)dlclose(library);
		library = NULL;
		return -1;
	}
	return 0;
}
