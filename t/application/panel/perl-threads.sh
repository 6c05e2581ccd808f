#!/bin/bash
# Packages: perl r-base-core. Needs: perl Rscript
# Perl's threads, each a copy of the interpreter, with a queue; R's processes that are forked and joined by pipes.
cat >work.pl <<'END'
use threads;
use threads::shared;
use Thread::Queue;
my ($in, $out) = (Thread::Queue->new, Thread::Queue->new);
my %seen :shared;
my @workers = map { threads->create(sub {
	while (defined(my $n = $in->dequeue)) {
		my $x = $n;
		$x = ($x * 69069 + $_) % 1000003 for 1 .. 40000;
		{ lock(%seen); $seen{$x % 7}++; }
		$out->enqueue("$n $x");
	}
	return threads->tid;
}) } 1 .. 3;
$in->enqueue(1 .. 120);
$in->end;
my @ids = map { $_->join } @workers;
$out->end;
my @all;
while (defined(my $line = $out->dequeue_nb)) { push @all, $line }
print scalar(@all), " ", unpack("%32C*", join("\n", sort @all)), " @ids ", join(",", map { "$_:$seen{$_}" } sort keys %seen), "\n";
END
cat >work.R <<'END'
library(parallel)
RNGkind("L'Ecuyer-CMRG"); set.seed(7)
r <- mclapply(1:24, function(k) { m <- matrix(rnorm(150 * 150), 150); sum(svd(m %*% t(m))$d) }, mc.cores = 2, mc.preschedule = TRUE)
cat(format(sum(unlist(r)), digits = 12), "\n")
cl <- makeCluster(2, type = "FORK"); clusterSetRNGStream(cl, 3)
cat(format(sum(unlist(parLapply(cl, 1:200, function(k) sum(sort(runif(20000)))))), digits = 12), "\n")
stopCluster(cl)
END
echo ready
perl work.pl >perl.out &
Rscript work.R 2>R.log
wait $!
cat perl.out
