-- SPDX-License-Identifier: Apache-2.0

-- KEYS: the leader, the state. ARGV: who, the token, then keys and values in turn; "-" and "+" before a value tell one that goes
-- from one that comes. Answers 1, or 0 if the term is over.

local held = redis.call('HMGET', KEYS[1], 'who', 'token')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] then return 0 end
for i = 3, #ARGV, 2 do
	if ARGV[i + 1] == '-' then
		redis.call('HDEL', KEYS[2], ARGV[i])
	else
		redis.call('HSET', KEYS[2], ARGV[i], string.sub(ARGV[i + 1], 2))
	end
end
return 1
