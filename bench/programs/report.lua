-- The records as tables, indexed by tag, sorted and written anew; and trees that live for a moment.
local records, tagged = {}, {}
for line in io.lines(arg[1]) do
  local id, name, tags, price = line:match("^(.-)\t(.-)\t(.-)\t(.*)$")
  local record = {id = tonumber(id), name = name, tags = {}, price = tonumber(price)}
  for tag in tags:gmatch("[^,]+") do
    record.tags[#record.tags + 1] = tag
    tagged[tag] = tagged[tag] or {}
    table.insert(tagged[tag], record)
  end
  records[#records + 1] = record
end

local function tree(depth) return depth == 0 and {} or {tree(depth - 1), tree(depth - 1)} end
local function count(node) return node[1] and 1 + count(node[1]) + count(node[2]) or 1 end
local nodes = 0
for _ = 1, #records // 1000 do nodes = nodes + count(tree(13)) end

table.sort(records, function(a, b) return a.name < b.name or a.name == b.name and a.id < b.id end)
for _, record in ipairs(records) do record.text = record.name:upper() .. ":" .. table.concat(record.tags, "|") end
local names = {}
for tag in pairs(tagged) do names[#names + 1] = tag end
table.sort(names)
for _, tag in ipairs(names) do
  local sum = 0
  for _, record in ipairs(tagged[tag]) do sum = sum + record.price end
  print(tag, #tagged[tag], string.format("%.2f", sum))
end
print(nodes, records[1].text)
