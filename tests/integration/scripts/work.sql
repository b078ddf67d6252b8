create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into t select i, 'name' || (i * 7919 % 1000), i / 7.0 from n;
create index by_name on t(name);
select name, count(*), round(sum(value), 3) from t group by name order by sum(value) desc limit 5;
select count(*) from t a join t b on a.name = b.name where a.id < 500;
update t set name = name || substr('xxxxxxxxxxxxxxxx', 1, id % 16) where id % 3 = 0;
delete from t where id % 5 = 0;
select count(*), sum(length(name)), group_concat(substr(name, 1, 5), '') from t where id < 200;
pragma integrity_check;
