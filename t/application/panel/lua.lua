-- Packages: lua5.4. Needs: lua5.4
local seen, state = {}, 1
local function work(n)
	for _ = 1, n do
		state = (state * 69069 + 1) % 1048576
		local word = "w" .. state % 997
		seen[word] = (seen[word] or 0) + state % 1000
	end
end
local squares = coroutine.wrap(function()
	local k = 0
	while true do
		coroutine.yield(k * k)
		k = k + 1
	end
end)
work(100000)
for _ = 1, 10 do squares() end
print("ready")
io.stdout:flush()
while not io.open("go") do
	local garbage = {}
	for k = 1, 1000 do garbage[k] = "x" .. k end
end
work(100000)
local sum, count = 0, 0
for _, v in pairs(seen) do sum, count = sum + v, count + 1 end
print(state, count, sum, squares())
