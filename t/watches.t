#!/bin/bash
# Watches of an ordinary user's: nobody may open the files by their handles (CAP_DAC_READ_SEARCH).
. "$(dirname "$0")/lib.sh"

if am_root && have setpriv && [ -z "${TRECR_DROPPED:-}" ]; then
	cd "$top" && rm -rf "$scratch"
	TRECR_DROPPED=1 exec setpriv --bounding-set=-dac_read_search -- "$BASH" "t/${0##*/}"
fi

cycle inotify
cycle watches

# A tree with a thousand of directories, by a program that works elsewhere.
if have inotifywait; then
	arena tree
	for i in {1..20}; do
		eval "mkdir -p tree/$i/{1..50}"
	done
	far=$PWD
	(cd / && exec trecr-run -d "$far/ck" -- inotifywait -m -r -e create --format '%w%f' \
		-o "$far/seen" "$far/tree" <&- >"$far/out" 2>"$far/err") &
	sup=$!
	await -t 60 -p $sup err 'Watches established' >/dev/null
	ok "inotifywait with a thousand watches is saved" freeze_away
	ok "and comes back" restart_detached
	: >tree/20/50/new
	ok "with its watches" await -t 30 -p "$sup" seen 'tree/20/50/new$'
	kill "$(program_of "$sup")"
	sweep >/dev/null
fi
done_testing
