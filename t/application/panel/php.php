<?php
// Packages: php-cli. Needs: php
$seen = [];
$state = 1;
function work($n) {
	global $seen, $state;
	for ($k = 0; $k < $n; $k++) {
		$state = ($state * 69069 + 1) % 1048576;
		$word = "w" . $state % 997;
		$seen[$word] = ($seen[$word] ?? 0) + $state % 1000;
	}
}
function squares() {
	for ($k = 0;; $k++)
		yield $k * $k;
}
work(200000);
$squares = squares();
for ($k = 0; $k < 10; $k++)
	$squares->next();
echo "ready\n";
while (!file_exists("go")) {
	preg_match('/(a+)+b/', str_repeat("a", 12));
	clearstatcache();
	usleep(1000);
}
work(200000);
echo "$state ", count($seen), " ", array_sum($seen), " ", $squares->current(), "\n";
