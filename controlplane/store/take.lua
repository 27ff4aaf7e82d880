-- SPDX-License-Identifier: Apache-2.0

-- KEYS: the call, then the buckets. ARGV: the call's id, its lease and how long it is remembered after that (µs), the items.
-- Answers: verdict, then for what refused and what would have in shadow mode: item (0: none), meter (0: in flight), wait, left.

local id, lease, remember = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local items = cjson.decode(ARGV[4])
local known = redis.call('GET', KEYS[1])
if known then
	local c = cmsgpack.unpack(known)
	return {c.settled and not c.items and 2 or 1, 0, 0, 0, 0, 0, 0, 0, 0}
end

local verdict, denied, shadow = 1, nil, nil
local function refuse(item, i, m, w, left)
	local f, old = {i, m, w, left}, denied
	if item.shadow then old = shadow else verdict = 0 end
	if old and (old[3] == forever or (w ~= forever and w <= old[3])) then return end
	if item.shadow then shadow = f else denied = f end
end

local records = {}
for i, item in ipairs(items) do
	local r = read(KEYS[i + 1])
	tidy(r, now, item)
	local at = now
	if r.clock <= now + maxLead then at = max(now, r.clock) end
	for k, m in ipairs(item.meters) do
		local name = tostring(m.id)
		r.meters[name] = fit(r.meters[name] or newState(now, m), now, m)
		local w = wait(r.meters[name], at, m.need)
		if w > 0 then w = w + at - now end -- the record's clock is ahead of the caller's
		if w ~= 0 then refuse(item, i, k, w, remaining(r.meters[name], at)) end
	end
	if item.inFlight > 0 then
		local free = item.inFlight - inFlight(r)
		if free < 1 then refuse(item, i, 0, 1000000, free) end
	end
	records[i] = r
end

if verdict == 1 then
	local c = {ends = now + lease, settled = false, items = {}}
	for i, item in ipairs(items) do
		local r, at = records[i], now
		if r.clock <= now + maxLead then at = max(now, r.clock + 1) end
		r.clock = at
		local held = {at = at, meters = {}}
		for k, m in ipairs(item.meters) do
			take(r.meters[tostring(m.id)], at, m.need)
			held.meters[k] = {tostring(m.id), m.unit + 1, m.need}
		end
		if item.inFlight > 0 then r.open[id] = c.ends end
		c.items[i] = held
		write(KEYS[i + 1], r, now)
	end
	c.keys = {}
	for i = 2, #KEYS do c.keys[i - 1] = KEYS[i] end
	redis.call('SET', KEYS[1], cmsgpack.pack(c), 'PX', string.format('%.0f', ceil((lease + remember) / 1000)))
end

local none = {0, 0, 0, 0}
local d, s = denied or none, shadow or none
return {verdict, d[1], d[2], d[3], d[4], s[1], s[2], s[3], s[4]}
