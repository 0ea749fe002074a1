-- leave: takes a member out of a crowd. Times in milliseconds of the server's clock.
-- KEYS crowd (members by when they are out). ARGV member. Returns 1 when it was in.
local out_at = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not out_at then
    return 0
end
redis.call('ZREM', KEYS[1], ARGV[1])
local time = redis.call('TIME')
return tonumber(out_at) > time[1] * 1000 + math.floor(time[2] / 1000) and 1 or 0
