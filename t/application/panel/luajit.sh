#!/bin/bash
# Packages: luajit. Needs: luajit
# LuaJIT: traces that are compiled, memory below 2 GiB, coroutines and C calls by its FFI.
cat >work.lua <<'END'
local ffi = require("ffi")
ffi.cdef [[ int abs(int); unsigned long strlen(const char *); ]]
local function work(seed)
	local s, t = seed, {}
	for k = 1, 20000000 do
		s = (s * 31 + k) % 1000003
		if k % 64 == 0 then t[s % 997] = "v" .. s end
		if k % 1024 == 0 then s = s + ffi.C.abs(-k) % 7 + tonumber(ffi.C.strlen(t[s % 997] or "")) end
		if k % 1000000 == 0 then coroutine.yield(s) end
	end
	return s
end
local threads = {}
for n = 1, 4 do threads[n] = coroutine.create(work) end
print("ready") io.flush()
for turn = 1, 21 do
	local line = {}
	for n = 1, 4 do local _, v = coroutine.resume(threads[n], n) line[n] = tostring(v) end
	print(turn, table.concat(line, " "))
end
END
luajit work.lua
echo "status $?"
