# Packages: tcl. Needs: tclsh
set state 1
proc work {n} {
	global state seen
	for {set k 0} {$k < $n} {incr k} {
		set state [expr {($state * 69069 + 1) % 1048576}]
		incr seen(w[expr {$state % 997}]) [expr {$state % 1000}]
	}
}
work 100000
puts ready
flush stdout
# By its event loop.
proc look {} {
	if {[file exists go]} {set ::there 1} else {after 5 look}
}
after 0 look
vwait there
work 100000
set sum 0
foreach {w v} [array get seen] {incr sum $v}
puts "$state [array size seen] $sum"
