#!/bin/sh
# deps.sh - install what building and testing need and this machine lacks. Silent, and
# without a call of the package manager, when nothing is missing.
set -eu

# What shows that it is there, and the package that brings it.
#	kind	name			apt		dnf			zypper
table='
	tool	gcc			gcc		gcc			gcc
	header	stdio.h			libc6-dev	glibc-devel		glibc-devel
	tool	make			make		make			make
	tool	objcopy			binutils	binutils		binutils
	header	libelf.h		libelf-dev	elfutils-libelf-devel	libelf-devel
	header	elfutils/libdwfl.h	libdw-dev	elfutils-devel		libdw-devel
	header	xxhash.h		libxxhash-dev	xxhash-devel		xxhash-devel
	header	zstd.h			libzstd-dev	libzstd-devel		libzstd-devel
	header	lz4.h			liblz4-dev	lz4-devel		liblz4-devel
	header	libmnl/libmnl.h		libmnl-dev	libmnl-devel		libmnl-devel
	header	libnftnl/rule.h		libnftnl-dev	libnftnl-devel		libnftnl-devel
	header	sodium.h		libsodium-dev	libsodium-devel		libsodium-devel
	tool	prove			perl		perl-Test-Harness	perl
	tool	gdb			gdb		gdb			gdb
	tool	eu-readelf		elfutils	elfutils		elfutils
	tool	python3			python3		python3			python3
	tool	strace			strace		strace			strace
	tool	valgrind		valgrind	valgrind		valgrind
	tool	man			man-db		man-db			man
	tool	ps			procps		procps-ng		procps
'

preprocesses() {
	${CC:-gcc} -E -x c - >/dev/null 2>&1
}

# All headers in one call: the usual case is that all are there.
headers_are_there=no
if echo "$table" | awk '$1 == "header" { print "#include <" $2 ">" }' | preprocesses; then
	headers_are_there=yes
fi

is_there() {
	case $1 in
	tool) command -v "$2" >/dev/null ;;
	header) [ $headers_are_there = yes ] || echo "#include <$2>" | preprocesses ;;
	esac
}

# Lines of the table for what is missing.
missing() {
	echo "$table" | while read -r kind name packages; do
		if [ -n "$kind" ] && ! is_there "$kind" "$name"; then
			echo "$kind $name $packages"
		fi
	done
}

lacking=$(missing)
if [ -z "$lacking" ]; then
	exit 0
fi

if command -v apt-get >/dev/null; then
	column=3 install='apt-get install -y --no-install-recommends' refresh='apt-get update'
elif command -v dnf >/dev/null; then
	column=4 install='dnf install -y' refresh='dnf makecache'
elif command -v zypper >/dev/null; then
	column=5 install='zypper --non-interactive install' refresh='zypper refresh'
else
	echo "deps: no apt-get, dnf or zypper here; please install what brings:" >&2
	echo "$lacking" | awk '{ print "\t" $1 " " $2 }' >&2
	exit 1
fi
packages=$(echo "$lacking" | awk -v c=$column '!seen[$c]++ { printf "%s ", $c }')
command="$install ${packages% }"

as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
	# Without a terminal nobody can answer a question for the password.
	[ -t 0 ] || as_root='sudo -n'
	if ! command -v sudo >/dev/null || ! $as_root true; then
		echo "deps: please run this as root, then try again:" >&2
		printf '\t%s\n' "$command" >&2
		exit 1
	fi
fi
echo "deps: $command"
if ! $as_root $command && ! { $as_root $refresh && $as_root $command; }; then
	echo "deps: this failed; please see to it, then try again:" >&2
	printf '\t%s\n' "${as_root:+sudo }$command" >&2
	exit 1
fi
lacking=$(missing)
if [ -n "$lacking" ]; then
	echo "deps: still missing after the installation:" >&2
	echo "$lacking" | awk '{ print "\t" $1 " " $2 }' >&2
	exit 1
fi
