#!/bin/bash
# make install: into an empty folder, and the tools work from there, those for GPUs, too.
. "$(dirname "$0")/lib.sh"

have make || skip_all "no make"
arena installed
root=$PWD/root
make -s -C "$top" O="$build" install DESTDIR="$root" PREFIX=/opt/trecr >make.out 2>&1
is $? 0 "make install" || diag "$(tail -n 5 make.out)"
installed=$root/opt/trecr
PATH=$installed/bin:$tool:/usr/local/bin:/usr/bin:/bin
is "$(ls "$installed/bin" | xargs)" "trecr-ckpt trecr-inspect trecr-restart trecr-run" "installs the tools"
is "$(find "$root" -type f ! -path "$installed/bin/*" ! -path "$installed/lib/trecr/*" \
	! -path "$installed/share/man/man[157]/*.[157]")" "" "and nothing beside them but libraries and pages"
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
	like "$(trecr-run --gpu=on -- env)" "LD_AUDIT=$installed/lib/trecr/libtrecr-audit.so" \
		"with the libraries that were installed"
fi
done_testing
