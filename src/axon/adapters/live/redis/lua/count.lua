-- count: how many are in a crowd now. Times in milliseconds of the server's clock.
-- KEYS crowd (members by when they are out). No ARGV. Returns the number.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZCOUNT', KEYS[1], string.format('(%.0f', now), '+inf')
