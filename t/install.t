#!/bin/bash
# make install: into an empty folder, and the tools work from there, those for GPUs, too.
. "$(dirname "$0")/lib.sh"

have make || skip_all "no make"
make -s -q -C "$top" O="$build" all || skip_all "the build is older than the sources"
arena installed
root=$PWD/root
make -s -C "$top" O="$build" install DESTDIR="$root" PREFIX=/opt/trecr >make.out 2>&1
is $? 0 "make install" || diag "$(tail -n 5 make.out)"
installed=$root/opt/trecr
PATH=$installed/bin:$tool:/usr/local/bin:/usr/bin:/bin
is "$(ls "$installed/bin" | xargs)" "trecr-ckpt trecr-inspect trecr-restart trecr-run" "installs the tools"
is "$(find "$root" -type f ! -path "$installed/bin/*" ! -path "$installed/lib/trecr/*" \
	! -path "$installed/share/man/man[157]/*.[157]")" "" "and nothing beside them but libraries and pages"
is "$(ls "$installed/lib/trecr/current/stubs")" "$(ls "$build/lib/trecr/stubs")" "each stub is where programs are given it"
for page in "$installed"/share/man/man*/*; do
	wrong=$(MANWIDTH=110 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
	is "$wrong" "" "${page##*/} can be shown"
done

scenario "an installed trecr saves and brings back" twice "$victim/program"
export LD_LIBRARY_PATH=$build/t/sim
if [ -x "$build/t/split/objects" ]; then
	RUN_FLAGS=--gpu=on
	scenario "and a program with a GPU" twice "$build/t/split/objects"
	arena audit
	release=$(readlink -f "$installed/lib/trecr/current")
	like "$(trecr-run --gpu=on -- env)" "LD_AUDIT=$release/libtrecr-audit.so" \
		"with the libraries that were installed"

	# Another release beside it, and then without it.
	arena upgrade
	ok "a program with a GPU" launch "$build/t/split/objects"
	ok "a checkpoint" freeze_away
	format=$(trecr-inspect "$path" | sed -n 's/^by .* image version //p')
	cp -r "$release" "$installed/lib/trecr/next"
	for file in "$installed"/lib/trecr/next/*.so "$installed"/lib/trecr/next/stubs/* \
		"$installed"/lib/trecr/next/trecr-lower; do
		perl -0777pi -e 's/(\x14\0\0\0\x03\0\0\0GNU\0).{20}/$1 . "next" x 5/se' "$file"
	done
	ln -sfn next "$installed/lib/trecr/current"
	like "$(trecr-run --gpu=on -- env)" "LD_AUDIT=$installed/lib/trecr/next/libtrecr-audit" \
		"programs that are started have the libraries of the new release"
	if ok "one of the old release comes back" restart_detached; then
		is "$(readlink "/proc/$sup/exe")" "$release/trecr-restart" "with the old one's tool"
		ok "and can be saved again" freeze_away
	fi
	# As if the new one had another format for images: only the old one's tool knows what this is.
	mv "$release/trecr-restart" "$release/own"
	for file in "$path"/*; do edit-image "$file" version 999; done
	cat >"$release/trecr-restart" <<-END
		#!/bin/sh
		for file in $path/*; do $tool/edit-image "\$file" version $format; done
		exec "$release/own" "\$@"
	END
	chmod +x "$release/trecr-restart"
	if ok "so does one whose image has a format of the old release" restart_detached; then
		is "$(readlink "/proc/$sup/exe")" "$release/own" "by that one's tool"
		ok "and can be saved" freeze_away
	fi
	mv "$release/own" "$release/trecr-restart"
	mv "$release" "$installed/lib/trecr/away"
	: >restart.err
	not_ok "without the old release it does not come back" quiet restart_detached
	like "$(cat restart.err)" "libraries of trecr [0-9.]+ in $release, and .* is gone or has changed" \
		"and it is said what is missing"
	cp -r "$installed/lib/trecr/next" "$release"
	rm "$release/trecr-restart"
	: >restart.err
	not_ok "nor with others in its place" quiet restart_detached
	like "$(cat restart.err)" "install that release again" "likewise"
	rm -r "$release"
	mv "$installed/lib/trecr/away" "$release"
	if ok "with it, it does" restart_here; then
		finish
		is "$status$(tail -n 1 out)" 0ok "and runs on" || explain
	fi
	sweep >/dev/null
fi

# make_in ROOT GOAL...: in a copy of the build, so that this one is not linked anew.
make_in() {
	local root=$1
	shift
	make -s -C "$top" O="$scratch/copy" LIBDIR=/opt/trecr/lib64 PREFIX=/opt/trecr DEPS=no \
		LDFLAGS=-Wl,-rpath,/a/name DESTDIR="$root" "$@" >make.out 2>&1
}
arena uninstall
for part in "$build"/*; do
	case ${part##*/} in
	t | demo | bench) ;;
	*) mkdir -p "$scratch/copy" && cp -a "$part" "$scratch/copy/" ;;
	esac
done
ok "make install, with another LIBDIR" make_in "$scratch/lib64" install || diag "$(tail -n 5 make.out)"
installed=$scratch/lib64/opt/trecr
is "$(ls "$installed" | xargs)" "bin lib64 share" "nothing is in lib"
is "$(PATH=$installed/bin:$PATH trecr-run --gpu=on -- sh -c 'echo $LD_AUDIT')" \
	"$(readlink -f "$installed/lib64/trecr/current")/libtrecr-audit.so" "the tools find it"
like "$(readelf -d "$installed/bin/trecr-run")" "R(UN)?PATH.*/a/name" "they are linked with LDFLAGS"
cp -r "$(readlink -f "$installed/lib64/trecr/current")" "$installed/lib64/trecr/earlier"
ok "make uninstall" make_in "$scratch/lib64" uninstall
is "$(find "$scratch/lib64" ! -type d ! -path '*/earlier/*')" "" "leaves no file but an earlier release's"
like "$(cat make.out)" "Left.*/earlier$" "and names that one"
rm -r "$installed/lib64/trecr/earlier"
make_in "$scratch/lib64" install && make_in "$scratch/lib64" uninstall
is "$(find "$scratch/lib64" ! -type d) $(ls "$installed/lib64")" " " "without one, it leaves nothing"

arena deps
make -C "$top" -n O="$scratch/copy" DEPS=no check TESTS= >make.out 2>&1
unlike "$(cat make.out)" "deps\.sh" "make check DEPS=no installs nothing"
env -u DEPS make -C "$top" -n O="$scratch/copy" check TESTS= >make.out 2>&1
like "$(cat make.out)" "deps\.sh" "without it, it does"
done_testing
