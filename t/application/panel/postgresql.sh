#!/bin/bash
# Packages: postgresql. Needs: /usr/lib/postgresql
# It does not run as root.
as=()
mkdir data
if [ "$(id -u)" = 0 ]; then
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
	chown 65534:65534 data
fi
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | tail -n 1)
exec bash "${0%/*}/../postgres.sh" "$bin" "${as[@]}" # waits for go
