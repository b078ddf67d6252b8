"""Which traces are replayed, and what they are recordings of."""

# Recorded from these workloads and programs with the trace recorder before the first round; A/U of Hoard's Table 4.
# Long enough for some ten megabytes in use: the kernel counts a process's memory to a quarter of a megabyte only.
# (shbench never has more than a thousand blocks a thread.)
TRACES = {
    "threadtest": ("threadtest", ["--size", "8", "--threads", "2", "--objects", "1000000", "--rounds", "2"]),
    "shbench": ("shbench", ["--threads", "2", "--iterations", "500"]),
    "larson": ("larson", ["--min", "10", "--max", "100", "--threads", "2", "--slots", "100000", "--seconds", "0.1"]),
    "barnes-hut": ("barnes-hut", ["--threads", "2", "--bodies", "65536", "--steps", "1"]),
    # CPython keeps small blocks to itself unless told otherwise.
    "python": ("/usr/bin/env", ["PYTHONMALLOC=malloc", "/usr/bin/python3", "-c",
                                "import json; d=[{'k%d'%i: list(range(i%20))} for i in range(40000)]; "
                                "[json.loads(json.dumps(x)) for x in d[::4]]"]),
    "perl": ("/usr/bin/perl", ["-e", "my %h; for my $i (1..300000) { $h{$i % 60000} .= 'x' x ($i % 40); } "
                               "my @k = sort keys %h; print scalar(@k), qq(\n);"]),
    "sqlite": ("/usr/bin/sqlite3", [":memory:", "create table t(a,b); with recursive c(x) as (select 1 union all select "
                                    "x+1 from c where x<150000) insert into t select x, hex(randomblob(x%60)) from c; "
                                    "create index i on t(b); select count(*) from t where b > 'A';"]),
}
