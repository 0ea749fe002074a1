-- appear: says that a worker is there, unless another incarnation has its name. Times in milliseconds of the server's clock.
-- KEYS workers (name to "until incarnation presence"). ARGV worker, incarnation, presence, ttl. Returns 1 when it counts.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = redis.call('HGET', KEYS[1], ARGV[1])
if held then
    local holder_until, holder = string.match(held, '^(%d+) (%S+) ')
    if tonumber(holder_until) > now and holder ~= ARGV[2] then
        return 0
    end
end
local ends = string.format('%.0f', now + ARGV[4])
redis.call('HSET', KEYS[1], ARGV[1], ends .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
local key_ttl = redis.call('PTTL', KEYS[1])
if key_ttl < tonumber(ARGV[4]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
