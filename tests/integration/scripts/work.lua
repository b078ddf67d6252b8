-- Strings, tables and coroutines, with collections in between.
local words, seed = {}, 42
local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n + 1 end
for i = 1, 100000 do
  local slot = random(5000)
  words[slot] = (words[slot] or "") .. string.char(96 + random(26))
  if i % 10000 == 0 then collectgarbage() end
end
local keys = {}
for k in pairs(words) do keys[#keys + 1] = k end
table.sort(keys)
local parts = {}
for _, k in ipairs(keys) do parts[#parts + 1] = k .. words[k] end
local all = table.concat(parts, ";")
print(#all, all:sub(1, 60), all:sub(-60))
local made = coroutine.wrap(function() for i = 1, 20000 do coroutine.yield({i, tostring(i)}) end end)
local sum = 0
for _ = 1, 20000 do local item = made(); sum = sum + item[1] + #item[2] end
print(sum)
