#!/bin/bash
# Packages: tarantool. Needs: tarantool
# Fibers on stacks of their own, two engines, a write-ahead log, and a client of its own over TCP.
cat >work.lua <<'END'
local fiber, net, fio = require('fiber'), require('net.box'), require('fio')
box.cfg{listen = '127.0.0.1:' .. os.getenv('PORT'), work_dir = '.', memtx_memory = 64 * 1024 * 1024, log = 'log', wal_mode = 'write',
	vinyl_memory = 8 * 1024 * 1024, checkpoint_interval = 0}
box.schema.user.grant('guest', 'super')
local m = box.schema.space.create('m', {engine = 'memtx'})
m:create_index('p')
m:create_index('s', {parts = {{2, 'unsigned'}}, unique = false})
local v = box.schema.space.create('v', {engine = 'vinyl'})
v:create_index('p')
for k = 1, 3000 do m:insert{k, k * 7919 % 1009, ('x'):rep(k % 50)} v:insert{k, k * k} end
local c = net.connect('127.0.0.1:' .. os.getenv('PORT'))
local sum, done = {}, fiber.channel(4)
for f = 1, 4 do
	fiber.create(function()
		local turns = 0
		while not fio.path.exists('go') do
			turns = turns + 1
			local k = turns * f % 3000 + 1
			assert(c:call('box.space.m:get', {k})[2] == k * 7919 % 1009)
			assert(c.space.v:get(k)[2] == k * k)
			fiber.sleep(0.003)
		end
		for k = f, 3000, 4 do
			box.begin() m:update(k, {{'+', 2, f}}) m:replace{k + 10000, f} box.commit()
			v:upsert({k, 0}, {{'+', 2, 1}})
		end
		done:put(f)
	end)
end
print('ready') io.stdout:flush()
for f = 1, 4 do done:get() end
box.snapshot()
local a, b = 0, 0
for _, t in m:pairs() do a = a + t[1] * t[2] end
for _, t in v:pairs() do b = b + t[1] * t[2] % 1000003 end
print(a, b, m:len(), v:len(), m.index.s:count(5))
io.stdout:flush()
os.exit(0)
END
tarantool work.lua
echo "status $?"
