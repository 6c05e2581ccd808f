#!/usr/bin/perl
# A Perl program as a victim: hashes, closures, a buffered file, a sleep that a signal ends.
use strict;
use warnings;

my $go = 0;
$SIG{USR1} = sub { $go = 1 };
my %table = map { $_ => $_ * 2 } 1 .. 10000;
my @closures = map { my $n = $_; sub { return $n++ } } 1 .. 5;
$_->() for @closures;
open my $file, '+>', 'perl-file' or die;
print $file "buffered";
syswrite STDOUT, "ready\n";
select undef, undef, undef, 0.2 until $go;
delete $table{5} if $ENV{VICTIM_HURT};
my $good = $closures[2]->() == 4 && keys %table == 10000 && $table{5} == 10;
seek $file, 0, 0;
$good &&= <$file> eq 'buffered';
syswrite STDOUT, $good ? "ok\n" : "differs\n";
exit($good ? 0 : 1);
