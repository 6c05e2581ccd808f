#!/bin/bash
# An image that an earlier release made, of a program on a GPU (t/release, by t/release/make.sh): it is said
# which release that was, and where that is installed it is the one that brings the program back.
. "$(dirname "$0")/lib.sh"

have gzip || skip_all "no gzip"

# by_itself NAME: a restart with this release alone.
by_itself() {
	trecr-restart ck >/dev/null 2>restart.err </dev/null
	is $? 125 "$1: not restarted without its release"
	like "$(cat restart.err)" "trecr $version\b.*$folder" "and it is said which that is, and where it was"
	is "$(grep -c '^trecr-restart: cannot restart ' restart.err)" 1 "in one line"
}

# with_its_release: as if this one were installed beside it, whose tool says what it was called with.
with_its_release() {
	$namespace sh -euc '
		mount -t tmpfs none /opt
		all=${0%/*}
		mkdir -p /opt/trecr/bin "$0" "$all/next"
		cp "$1" /opt/trecr/bin/
		cp "$1" "$all/next/"
		ln -s next "$all/current"
		printf "#!/bin/sh\necho given \"\$@\"\n" >"$0/trecr-restart"
		chmod +x "$0/trecr-restart"
		shift
		/opt/trecr/bin/trecr-restart "$@"' "$folder" "$build/trecr-restart" "$@" 2>&1
}

namespace="unshare --mount"
am_root || namespace="unshare --user --map-root-user --mount"

for kept in "$top"/t/release/image-of-*.tar.gz; do
	version=${kept##*/image-of-}
	version=${version%.tar.gz}
	arena "$version"
	mkdir -m 700 ck
	tar -xzf "$kept" -C ck --no-same-owner
	job=ck/latest/job
	folder=$(strings -n 8 "$job" | grep -m 1 "^/opt/trecr/lib/trecr/$version-")
	isnt "$folder" "" "$version: its image names the folder of its release"
	trecr-inspect ck >inspect.out 2>&1
	like "$(cat inspect.out)" "trecr $version\b" "trecr-inspect tells the release"
	if grep -q '^by ' inspect.out; then
		ok "it can be read, and is whole" quiet trecr-inspect --verify ck
	fi
	by_itself "$version"
	for what in "as it is" "in another format" "with a feature that is not known here"; do
		case $what in
		*format) edit-image "$job" version 999 ;;
		*feature*)
			tar -xzf "$kept" -C ck --no-same-owner
			edit-image "$job" incompat 0x4000000000000000
			;;
		esac
		[ "$what" = "as it is" ] || by_itself "$version, $what"
		if ! $namespace mount -t tmpfs none /opt 2>/dev/null; then
			skip "$version, $what: handed to its release" "no mount namespaces here"
			continue
		fi
		out=$(with_its_release -D "$PWD/ck")
		is "$out" "given -D $PWD/ck" "$version, $what: handed to its release where that is"
	done
done
done_testing
