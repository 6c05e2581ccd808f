# Hashes, regular expressions, closures, sorting and an open file, with more of it done after
# "ready" than before.
use strict;
use warnings;
$| = 1;

my $state = 1;
sub word {
	my $word = '';
	do {
		$state = ($state * 1103515245 + 12345) & 0x7fffffff;
		$word .= chr(97 + ($state >> 16) % 7);
	} while (($state >> 8) % 4);
	return $word;
}

my %seen;
my @each = map { my $n = $_; sub { ($_[0] =~ tr/a-g//) * $n } } 1 .. 5;
open(my $list, '+>', 'list') or die;
sub work {
	my ($count) = @_;
	for (1 .. $count) {
		my $word = word();
		$seen{$word}++;
		$seen{reverse $word} += $each[$_ % 5]->($word) if $word =~ /^(.)(.).*\2\1?/;
		print $list "$word\n";
	}
}
work(50000);
print "ready\n";
my %kept = %seen;
select(undef, undef, undef, 0.02) until -e 'go';
print "changed\n" if grep { $kept{$_} != $seen{$_} } keys %seen;
work(50000);
seek($list, 0, 0);
my ($lines, $longest) = (0, '');
while (my $line = <$list>) {
	chomp $line;
	$lines++;
	$longest = $line if length $line > length $longest;
}
my @order = sort { $seen{$b} <=> $seen{$a} || $a cmp $b } keys %seen;
print scalar(@order), " words in $lines lines, longest $longest\n";
print "$_ $seen{$_}\n" for @order[0 .. 20];
