-- SPDX-License-Identifier: Apache-2.0

-- KEYS: the call, then its buckets, as keys.lua has said them; none if the call was not known. ARGV: the call's id, how long it
-- is remembered (µs), then what it cost by unit. Answers 1 if it was settled, 0 if there is nothing to settle, 2 if the
-- buckets are not given.

local id, remember = ARGV[1], tonumber(ARGV[2])
local known = redis.call('GET', KEYS[1])
if not known then
	redis.call('SET', KEYS[1], cmsgpack.pack({settled = true}), 'PX', string.format('%.0f', ceil(remember / 1000)))
	return 0
end
local c = cmsgpack.unpack(known)
if c.settled or c.ends <= now then return 0 end
if #KEYS ~= #c.keys + 1 then return 2 end
for i, held in ipairs(c.items) do
	local r = read(KEYS[i + 1])
	r.open[id] = nil
	local at = now
	if r.clock <= now + maxLead then at = max(now, r.clock) end
	for _, t in ipairs(held.meters) do
		local s = r.meters[t[1]]
		if s then settle(s, held.at, at, t[3], tonumber(ARGV[2 + t[2]])) end
	end
	write(KEYS[i + 1], r, now)
end
c.settled = true
redis.call('SET', KEYS[1], cmsgpack.pack(c), 'KEEPTTL')
return 1
