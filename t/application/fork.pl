# Children that wait, talk through pipes both ways, and end with statuses.
use strict;
use warnings;
use IO::Handle;
$| = 1;

my @children;
for my $n (1 .. 4) {
	pipe(my $question, my $ask) or die;
	pipe(my $tell, my $answer) or die;
	my $pid = fork // die;
	if (!$pid) {
		close $_ for $ask, $tell, map { $_->{ask} } @children;
		$answer->autoflush;
		while (my $line = <$question>) {
			print $answer $n * $line, "\n";
		}
		exit $n;
	}
	close $question;
	close $answer;
	$ask->autoflush;
	push @children, {pid => $pid, ask => $ask, tell => $tell, sum => 0};
}

# One question ahead all the time.
my $k = 0;
print {$_->{ask}} "1\n" for @children;
print "ready\n";
while ($k < 1000 || !-e 'go') {
	$k++;
	for my $child (@children) {
		print {$child->{ask}} "$k\n";
		my $answer = readline $child->{tell};
		$child->{sum} += $answer if $k <= 1000;
	}
}
for my $child (@children) {
	close $child->{ask};
	waitpid $child->{pid}, 0;
	print "$child->{sum}, status ", $? >> 8, "\n";
}
