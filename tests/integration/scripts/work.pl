# Hashes, regular expressions, deep structures, sorting and a fork.
use strict;
use warnings;
my (%seen, @rows);
my $seed = 7;
for my $i (1 .. 60000) {
  $seed = ($seed * 1103515245 + 12345) % 2147483648;
  push @{ $seen{ 'k' . ($seed % 3000) } }, "v$i" x ($seed % 5);
}
for my $key (sort keys %seen) { push @rows, join ',', $key, scalar @{ $seen{$key} }, join '', @{ $seen{$key} } }
my $all = join "\n", @rows;
my $replaced = ($all =~ s/v(\d+)/<$1>/g);
printf "%d %d %s\n", length $all, $replaced, unpack '%32C*', $all;
my $pid = fork;
if (!$pid) { my @copy = map { scalar reverse } @rows; exit(@copy == @rows ? 3 : 4) }
waitpid $pid, 0;
print $? >> 8, "\n";
