-- SPDX-License-Identifier: Apache-2.0

-- KEYS: the leader, the last token. ARGV: who, the lease (ms). Answers the token, or, if somebody else leads, 0, who, and for how long
-- (ms). A token counts up and goes by the clock too: a Redis that lost the last one gives no token twice.

local held = redis.call('HMGET', KEYS[1], 'who', 'token')
if held[1] and held[1] ~= ARGV[1] then return {'0', held[1], redis.call('PTTL', KEYS[1])} end
local token = held[2]
if not token then
	token = string.format('%.0f', max(now, tonumber(redis.call('GET', KEYS[2]) or '0') + 1))
	redis.call('SET', KEYS[2], token)
end
redis.call('HSET', KEYS[1], 'who', ARGV[1], 'token', token)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {token, ARGV[1], 0}
