# The records as hashes, indexed by tag and by word, sorted and written anew.
my (%tagged, %named, @records);
while (<>) {
  chomp;
  my ($id, $name, $tags, $price) = split /\t/;
  push @records, {id => $id, name => $name, tags => [split /,/, $tags], price => $price};
  push @{$tagged{$_}}, $id for split /,/, $tags;
  $named{$_}{$id}++ for split / /, $name;
}
for my $record (sort { $a->{name} cmp $b->{name} || $a->{id} <=> $b->{id} } @records) {
  my $text = join '|', map { uc } @{$record->{tags}};
  $text =~ s/([AEIOU])/<$1>/g;
  $record->{text} = $text . reverse $record->{name};
}
print "$_ @{$tagged{$_}}[0..2] ", scalar(keys %{$named{$_} || {}}), "\n" for sort keys %tagged;
print length(join '', map { $_->{text} } @records), "\n";
