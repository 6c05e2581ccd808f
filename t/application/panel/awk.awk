# Packages: gawk. Needs: gawk
function work(n,   k) {
	for (k = 0; k < n; k++) {
		state = (state * 69069 + 1) % 1048576
		seen["w" state % 997] += state % 1000
	}
}
BEGIN {
	state = 1
	work(100000)
	print "ready"
	fflush()
	while ((getline line <"go") < 0)
		length(sprintf("%1000s", line))
	work(100000)
	for (w in seen)
		sum += seen[w]
	print state, length(seen), sum
}
