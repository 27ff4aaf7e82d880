-- SPDX-License-Identifier: Apache-2.0

-- The buckets of a call, which a script has to be told beforehand. KEYS: the call.

local known = redis.call('GET', KEYS[1])
if not known then return {} end
return cmsgpack.unpack(known).keys or {}
