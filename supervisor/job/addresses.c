/*
 * addresses.c - the addresses of this machine's interfaces, those first that others are likely
 * to reach.
 */
#include "supervisor/job/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/util.h"

/* An address that other machines can use as it is: IPv6 addresses of a link depend on the
 * interface that is connected from. NULL: none. */
static const void *usable_address(const struct ifaddrs *i)
{
	const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
		return NULL;
	if (i->ifa_addr->sa_family == AF_INET)
		return &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr;
	if (i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
		return &v6->sin6_addr;
	return NULL;
}

int addresses_own(struct addresses *a, const char *interface, struct err *e)
{
	struct ifaddrs *all;

	*a = (struct addresses){0};
	if (getifaddrs(&all))
		return err_set(e, errno, "cannot list the addresses of this machine");
	for (const struct ifaddrs *i = all; i && a->count < ADDRESSES_MAX; i = i->ifa_next) {
		const void *address = usable_address(i);

		if (!address || (interface && strcmp(i->ifa_name, interface)))
			continue;
		if (inet_ntop(i->ifa_addr->sa_family, address, a->text[a->count], ADDRESS_TEXT))
			a->count++;
	}
	freeifaddrs(all);
	if (interface && !a->count)
		return err_set(e, 0,
			"this machine has no interface %s that is up and has an address",
			interface);
	return 0;
}
