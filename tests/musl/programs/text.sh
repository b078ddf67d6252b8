# Pipes of busybox's programs, each a process of its own; says a few sums.
set -e
seq 1 60000 | awk '{ print ($1 * 7919) % 60013, "line", $1 }' >/tmp/lines
sort -n /tmp/lines | sha256sum
sort /tmp/lines | uniq | sed 's/line/row/' | grep -c 'row .*7'
gzip -c /tmp/lines | gunzip -c | sha256sum
bzip2 -c /tmp/lines | bunzip2 -c | sha256sum
tar -C /tmp -cf - lines | tar -xOf - | wc -l
for i in $(seq 1 30); do expr $i \* $i; done | tr '\n' ' '
echo
