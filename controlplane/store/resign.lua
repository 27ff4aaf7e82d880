-- SPDX-License-Identifier: Apache-2.0

-- KEYS: the leader. ARGV: who, the token.

local held = redis.call('HMGET', KEYS[1], 'who', 'token')
if held[1] == ARGV[1] and held[2] == ARGV[2] then redis.call('DEL', KEYS[1]) end
return 1
