#!/bin/bash
# Packages: gnuplot-nox. Needs: gnuplot
# Asked through a pipe; plots of what it keeps in blocks of data.
coproc gnuplot 2>&1
gp=$COPROC_PID
ask() { # WHAT: done when it has been printed
	printf '%s\nprint "done_that"\n' "$1" >&"${COPROC[1]}"
	until read -r line && [ "$line" = done_that ]; do kill -0 "$gp" || exit 1; done <&"${COPROC[0]}"
}
ask 'set terminal svg; set output "/dev/null"; f(x) = 3 * exp(-1.5 * x) + 0.25; set samples 500'
ask 'set table $data; plot [0:5] f(x); unset table'
echo ready
while [ ! -e go ]; do ask 'plot $data with lines, sin(x * rand(0))'; done
ask 'stats $data using 1:2 nooutput'
ask 'set terminal dumb; set output "picture"; plot $data using 1:2 with points, f(x); set output'
ask 'set print "result"; print sprintf("%.9f %.9f", STATS_mean_y, STATS_slope); set print'
eval "exec ${COPROC[1]}>&-"
wait "$gp"
echo "status $?"
cat result
cksum picture
