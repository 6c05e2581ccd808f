#!/bin/bash
# fetch.sh DIRECTORY [FOLDER...]: the tests of MPICH, from Debian's source package, built there. Sources are those
# that the machine has its packages from.
set -u
suite=$1
shift
[ $# -gt 0 ] || set -- pt2pt coll comm datatype group info attr errhan topo init

# The same as for packages, in either form.
sources() {
	local debian=/etc/apt/sources.list.d/debian.sources
	[ ! -e $debian ] || sed 's/^Types:.*/Types: deb-src/' $debian >"$suite/sources.d/debian.sources"
	[ ! -e /etc/apt/sources.list ] ||
		sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$suite/sources.d/sources.list"
}

fetch() {
	local apt=(-o Dir::Etc::sourcelist=- -o "Dir::Etc::sourceparts=$suite/sources.d"
		-o "Dir::State::lists=$suite/lists" -o "Dir::Cache=$suite/cache" -o APT::Sandbox::User=root)

	mkdir -p "$suite/sources.d" "$suite/lists/partial" "$suite/cache/archives/partial" &&
		cd "$suite" && sources && apt-get "${apt[@]}" -qq update &&
		apt-get "${apt[@]}" -qq --download-only source mpich &&
		tar xf mpich_*.orig.tar.* --wildcards '*/test/mpi/*'
}

# A few tests are for features that the package lacks.
build() {
	local folder
	cd "$suite"/mpich-*/test/mpi || return
	[ -e Makefile ] || ./configure --disable-fortran --disable-cxx --with-mpi=/usr \
		CC=mpicc.mpich MPICC=mpicc.mpich >configure.out 2>&1 || return
	for folder in util dtpools "$@"; do
		make -k -j2 -C "$folder" >"$folder.out" 2>&1 || :
	done
}

[ -d "$(echo "$suite"/mpich-*/test/mpi)" ] || fetch && build "$@"
