-- give: puts back into a bucket, up to its capacity. Times in microseconds of the server's clock, ttls in ms.
-- KEYS bucket. ARGV amount, capacity, longest ttl. Returns nothing; a missing bucket is full already.
local level = redis.call('HMGET', KEYS[1], 'amount', 'at', 'refill')
if not level[1] then
    return
end
local capacity, longest, refill = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(level[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local amount = math.min(capacity, tonumber(level[1]) + math.max(0, now - level[2]) / 1000000 * refill) + ARGV[1]
if amount >= capacity then
    redis.call('DEL', KEYS[1])
    return
end
local full_in = longest
if refill > 0 then
    full_in = math.min(longest, math.ceil((capacity - amount) / refill * 1000))
end
redis.call('HSET', KEYS[1], 'amount', string.format('%.17g', amount), 'at', now)
redis.call('PEXPIRE', KEYS[1], full_in)
