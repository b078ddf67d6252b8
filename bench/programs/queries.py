"""Queries as analysts ask them, by DuckDB on two threads over generated tables.  queries.py ORDERS"""

import sys

import duckdb

orders = int(sys.argv[1])
db = duckdb.connect(config={"threads": 2})
db.execute("create table part as select i as id, 'part ' || (i * 7919 % 1000) as name, i % 25 as brand "
           "from range(20000) t(i)")
db.execute("create table orders as select i as id, (i * 2654435761) % 15000 as customer, "
           "date '2020-01-01' + cast((i * 40503) % 2000 as integer) as placed, 'clerk ' || (i * 31 % 1000) as clerk "
           f"from range({orders}) t(i)")
db.execute("create table item as select i // 4 as orders, (i * 2246822519) % 20000 as part, 1 + i % 50 as quantity, "
           "(i * 3266489917) % 100000 as cents, 'comment ' || ((i * 668265263) % 300000) as note "
           f"from range({4 * orders}) t(i)")
for query in (
        "select part % 3, count(*), sum(quantity), sum(cents), count(distinct note) from item group by 1 order by 1",
        "select clerk, sum(cents) as paid from orders join item on orders.id = item.orders "
        "join part on part.id = item.part where placed < date '2022-01-01' and brand < 10 "
        "group by 1 order by 2 desc, 1 limit 10",
        "select note, count(*), list(part order by part)[1:3] from item group by 1 order by 2 desc, 1 limit 10",
        "select customer, string_agg(distinct clerk, ',' order by clerk) from orders group by 1 order by 1 limit 10",
        "select name, max(found) from (select name, length(note) + rank() over (partition by part order by cents, note) "
        "as found from item join part on part.id = item.part) group by 1 order by 2 desc, 1 limit 10",
        "select count(*) from item where regexp_matches(note, '12.*7$')"):
    for _ in range(2):
        print(db.execute(query).fetchall())
