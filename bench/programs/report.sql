-- The records in tables in memory, with indexes, joins and changes.
create table record(id integer primary key, name text, tags text, price real);
.mode tabs
.import records.tsv record
create index by_name on record(name);
create table word(word text, id integer);
with recursive split(id, word, rest) as (
  select id, '', tags || ',' from record
  union all select id, substr(rest, 1, instr(rest, ',') - 1), substr(rest, instr(rest, ',') + 1) from split where rest <> '')
insert into word select word, id from split where word <> '';
create index by_word on word(word);
select word, count(*), round(sum(price), 2), min(name) from word join record using (id) group by word order by 2 desc, 1 limit 50;
select a.word, b.word, count(*) from word a join word b on a.id = b.id and a.word < b.word group by 1, 2 order by 3 desc, 1, 2 limit 20;
select substr(name, 1, 2), group_concat(upper(name)) from (select name from record order by name, id) group by 1 order by 1;
update record set name = name || '-' || id, tags = upper(tags) where id % 2 = 1;
delete from record where tags = '';
select count(*), sum(length(name)) from record;
