-- take: takes from a bucket that refills, all or nothing. Times in microseconds of the server's clock, ttls in ms.
-- KEYS bucket. ARGV cost, capacity, refill per second, longest ttl. Returns 1 or 0 for granted, and what remains.
local cost, capacity, refill, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local level = redis.call('HMGET', KEYS[1], 'amount', 'at', 'refill')
local amount = capacity
if level[1] then
    amount = math.min(capacity, tonumber(level[1]) + math.max(0, now - level[2]) / 1000000 * level[3])
end
local granted = cost <= amount
if granted then
    amount = amount - cost
end
if amount >= capacity then
    redis.call('DEL', KEYS[1]) -- a full bucket and a missing one are the same
else
    local full_in = longest
    if refill > 0 then
        full_in = math.min(longest, math.ceil((capacity - amount) / refill * 1000))
    end
    redis.call('HSET', KEYS[1], 'amount', string.format('%.17g', amount), 'at', now, 'refill', ARGV[3])
    redis.call('PEXPIRE', KEYS[1], full_in)
end
return {granted and 1 or 0, string.format('%.17g', amount)}
