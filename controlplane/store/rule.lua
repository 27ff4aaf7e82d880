-- SPDX-License-Identifier: Apache-2.0

-- The rule of a central limit, as in rule.go, bucket.go and window.go, under the same names. Every number is a float, and
-- every one that is kept is whole and below 2^53. Arrays begin with 1, so a slot's index is one more than there.

local ringSlots, subWindows, fine = 64, 60, 1024
local forever, exactly, maxLead = -1, 1 - 1 / 2^50, 60000000
local sliding, continuous, fixed, stock = 0, 1, 2, 4
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local function width(s) return ceil(s.window / subWindows) end
local function index(slot) return slot % ringSlots + 1 end

local function emptyRing()
	local slots = {}
	for i = 1, ringSlots do slots[i] = 0 end
	return slots
end

local function newState(now, m)
	local s = {
		id = m.id, kind = m.kind, paced = m.paced, limit = m.limit, burst = m.burst, window = m.window, counts = m.counts,
		born = now, at = now, level = m.burst * fine, troughAt = {}, trough = {}, sum = 0, slots = emptyRing(),
		opened = 0, ends = 0, guard = 0, used = 0, carry = 0,
	}
	s.head = floor(now / width(s))
	return s
end

local function gain(s, elapsed)
	elapsed = min(max(elapsed, 0), 3 * s.window)
	return floor(elapsed * s.limit / s.window * fine * exactly)
end

local function level(s, now) return min(s.burst * fine, s.level + gain(s, now - s.at)) end

local function join(s)
	local best, least = 1, math.huge
	for i = 1, #s.trough - 1 do
		local ratio = s.trough[i + 1] / s.trough[i]
		if ratio < least then best, least = i, ratio end
	end
	s.trough[best + 1] = s.trough[best]
	table.remove(s.trough, best)
	table.remove(s.troughAt, best)
end

local function note(s, at, lack)
	while #s.trough > 0 and s.trough[#s.trough] >= lack do
		table.remove(s.trough)
		table.remove(s.troughAt)
	end
	if #s.trough == 8 then join(s) end
	s.trough[#s.trough + 1], s.troughAt[#s.troughAt + 1] = lack, at
end

local function leastSince(s, at)
	for i = 1, #s.trough do
		if s.troughAt[i] > at then return s.trough[i] end
	end
	return math.huge
end

local function lower(s, at, d)
	local ats, lacks = s.troughAt, s.trough
	s.troughAt, s.trough = {}, {}
	for i = 1, #lacks do
		local lack = lacks[i]
		if ats[i] > at then lack = max(lack - d, 0) end
		note(s, ats[i], lack)
	end
end

local function bucketWait(s, now, n)
	local want = min(n, s.burst) * fine
	if want <= level(s, now) then return 0 end
	local need, base = want - s.level, max(now - s.at, 0)
	local w = max(ceil(need * s.window / (s.limit * fine)) - base, 1)
	while gain(s, base + w) < need and w < 3 * s.window do w = w + 1 + floor(w / 2^40) end
	return w + max(s.at - now, 0)
end

local function bucketSettle(s, at, now, d)
	now = max(now, s.at)
	local has = level(s, now)
	if d > 0 then
		s.at, s.level = now, max(has - d * fine, -s.limit * fine)
		return
	end
	s.level = min(has + min(-d * fine, leastSince(s, at)), s.burst * fine)
	s.at = now
	lower(s, at, -d * fine)
end

local function advance(s, now)
	local to = floor(now / width(s))
	if to - s.head >= ringSlots then
		s.head, s.sum, s.slots = to, 0, emptyRing()
		return
	end
	while s.head < to do
		s.head = s.head + 1
		s.sum = s.sum - s.slots[index(s.head - s.counts)]
		s.slots[index(s.head)] = 0
	end
end

local function ringWait(s, now, n)
	local lack = s.sum + n - s.limit
	if lack <= 0 then return 0 end
	for slot = s.head - s.counts + 1, s.head do
		lack = lack - s.slots[index(slot)]
		if lack <= 0 then return max((slot + s.counts) * width(s) - now, 1) end
	end
	return s.window
end

local function add(s, at, n)
	local slot = min(floor(at / width(s)), s.head)
	if slot <= s.head - s.counts then return false end
	local i = index(slot)
	n = max(n, -s.slots[i])
	s.slots[i], s.sum = s.slots[i] + n, s.sum + n
	return true
end

local function roll(s, m)
	s.guard = m.guard
	if m.ends <= s.ends then
		if s.ends - m.ends > 2 * s.window then s.ends = m.ends end
		return
	end
	local used = 0
	if s.ends == m.from then
		used = s.carry
	elseif s.ends == 0 or s.ends > m.from then
		used = s.used
	end
	s.opened, s.ends, s.used, s.carry = m.from + m.guard, m.ends, used, 0
end

local function counterWait(s, now, n)
	local closes = s.ends + s.guard
	if s.used + n <= s.limit then return 0 end
	if s.carry + n > s.limit then return max(closes - now, 0) + s.window end
	return max(closes - now, 1)
end

local function count(s, at, n)
	s.used = max(s.used + n, 0)
	if s.guard > 0 and at >= s.ends - s.guard then s.carry = min(max(s.carry + n, 0), s.used) end
end

local function usedNow(s, now)
	if s.kind == fixed or s.kind == stock then return max(s.used, 0) end
	if s.kind == continuous then return max(s.burst - floor(level(s, now) / fine), 0) end
	advance(s, now)
	return max(s.sum, 0)
end

local function book(s, now, used)
	if s.kind == fixed then
		s.used = used
	elseif s.kind == stock then
		s.used = used
		if used > 0 then s.opened, s.ends = now, now + s.window end
	elseif s.kind == sliding then
		add(s, now, used)
	end
end

local function fit(s, now, m)
	local same = s.kind == m.kind and s.window == m.window and s.counts == m.counts and s.paced == m.paced
	if not same or s.at > now + maxLead then
		local fresh, used = newState(now, m), usedNow(s, now)
		fresh.level = min(level(s, now), fresh.level)
		if not s.paced then fresh.level = max(fresh.level - used * fine, 0) end
		book(fresh, now, used)
		s = fresh
	elseif s.limit ~= m.limit or s.burst ~= m.burst then
		s.level, s.at = min(level(s, now), m.burst * fine), max(s.at, now)
		s.limit, s.burst, s.trough, s.troughAt = m.limit, m.burst, {}, {}
		note(s, now, 0)
	end
	if m.kind == fixed then
		roll(s, m)
	elseif m.kind == stock and s.ends > 0 and now >= s.ends then
		s.opened, s.ends, s.used = 0, 0, 0
	end
	return s
end

local function wait(s, now, n)
	if n <= 0 then return 0 end
	if n > s.limit then return forever end
	local w = 0
	if s.paced then w = bucketWait(s, now, n) end
	if s.kind == fixed or s.kind == stock then
		w = max(w, counterWait(s, now, n))
	elseif s.kind == sliding then
		advance(s, now)
		w = max(w, ringWait(s, now, n))
	end
	return w
end

local function remaining(s, now)
	local r = s.limit
	if s.paced then r = floor(level(s, now) / fine) end
	if s.kind == fixed or s.kind == stock then
		r = min(r, s.limit - s.used)
	elseif s.kind == sliding then
		advance(s, now)
		r = min(r, s.limit - s.sum)
	end
	return r
end

local function take(s, at, n)
	if n <= 0 then return end
	local has = level(s, at)
	note(s, at, s.burst * fine - has)
	s.at, s.level = at, max(has - n * fine, -s.limit * fine)
	if s.kind == fixed then
		count(s, at, n)
	elseif s.kind == stock then
		if s.ends == 0 then s.opened, s.ends = at, at + s.window end
		s.used = s.used + n
	elseif s.kind == sliding then
		advance(s, at)
		add(s, at, n)
	end
end

local function settle(s, at, now, reserved, actual)
	local d = actual - reserved
	if d == 0 then return end
	bucketSettle(s, at, now, d)
	if at < s.born then
		if d < 0 then return end
		at = now
	end
	if s.kind == fixed or s.kind == stock then
		if d > 0 and s.guard > 0 and now >= s.ends + s.guard then
			count(s, now, d)
		elseif at >= s.opened - 2 * s.guard then
			count(s, at, d)
		elseif d > 0 then
			count(s, now, d)
		end
	elseif s.kind == sliding then
		advance(s, now)
		if not add(s, at, d) and d > 0 then add(s, now, d) end
	end
end

-- A record is a bucket: clock, meters by id (as text), calls in flight by id.

local function read(key)
	local b = redis.call('GET', key)
	if b then return cmsgpack.unpack(b) end
	return {clock = 0, meters = {}, open = {}}
end

local function write(key, r, now)
	local keep = 300000000 -- in case that the clock is put back
	for _, s in pairs(r.meters) do keep = max(keep, max(s.at, s.ends) + 4 * s.window - now) end
	for _, ends in pairs(r.open) do keep = max(keep, ends - now) end
	redis.call('SET', key, cmsgpack.pack(r), 'PX', string.format('%.0f', ceil(keep / 1000) + 1))
end

local function inFlight(r)
	local n = 0
	for _ in pairs(r.open) do n = n + 1 end
	return n
end

local function tidy(r, now, item)
	for id, ends in pairs(r.open) do
		if ends <= now then r.open[id] = nil end
	end
	local known = {}
	for _, m in ipairs(item.meters) do known[tostring(m.id)] = true end
	for id, s in pairs(r.meters) do
		if not known[id] and max(s.at, s.ends) + 4 * s.window < now then r.meters[id] = nil end
	end
end
