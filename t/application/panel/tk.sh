#!/bin/bash
# Packages: xvfb tk x11-apps. Needs: Xvfb wish xwd
# Windows with buttons and a canvas that is drawn on all the time.
export HOME=$PWD
exec {number}<>number
Xvfb -displayfd $number -screen 0 400x300x24 -nolisten tcp -noreset >xvfb.log 2>&1 &
server=$!
until read -r -t 0.1 n <number && [ -n "$n" ]; do kill -0 $server || exit 1; done
export DISPLAY=:$n
exec {number}>&-
cat >draw.tcl <<'END'
wm geometry . 300x200+0+0
canvas .c -width 280 -height 120 -background white
label .l -text begin
entry .e -textvariable words
pack .c .l .e
set x 7
set step 0
proc draw {} {
	global x step
	set x [expr {($x * 1103515245 + 12345) % 2147483648}]
	.c delete turn[expr {$step % 20}]
	.c create oval [expr {$x % 260}] [expr {$x / 260 % 100}] [expr {$x % 260 + 20}] [expr {$x / 260 % 100 + 20}] \
		-fill [lindex {red green blue} [expr {$x / 7 % 3}]] -tags turn[expr {$step % 20}]
	incr step
	.l configure -text "step $step"
	if {$step == 5} {puts begun; flush stdout}
	if {$step == 200 && ![file exists go]} {set step 100; set x 7; foreach k {0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19} {.c delete turn$k}}
	if {$step == 200} {focus .; set ::words "the last words"; update; puts "x $x, [llength [.c find all]] things"; flush stdout; after 300000 exit; return}
	after 5 draw
}
after 10 draw
END
wish draw.tcl >said 2>wish.log &
child=$!
until grep -q begun said; do kill -0 $child || exit 1; sleep 0.05; done
echo ready
until grep -q things said; do kill -0 $child || exit 1; sleep 0.05; done
picture=
until [ "$picture" = "$(xwd -silent -root | cksum)" ]; do picture=$(xwd -silent -root | cksum); sleep 0.5; done
grep things said
echo "$picture"
kill $child $server
wait $server
echo "server $?"
