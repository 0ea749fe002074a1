-- charge: adds to the counters of a pool's tenants, lifted to a floor before; bounded. Times in milliseconds.
-- KEYS pool. ARGV ttl of an idle pool, most tenants, how many stay when there are more, the floor, how many tenants are
-- asked for, these, then tenant and amount in turn. Returns the counters of those asked for.
local floor, num_asked = tonumber(ARGV[4]), tonumber(ARGV[5])
for i = 6 + num_asked, #ARGV, 2 do
    if floor > tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0) then
        redis.call('HSET', KEYS[1], ARGV[i], ARGV[4])
    end
    redis.call('HINCRBYFLOAT', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then
    local flat, counters = redis.call('HGETALL', KEYS[1]), {}
    for i = 1, #flat, 2 do
        counters[#counters + 1] = {flat[i], tonumber(flat[i + 1])}
    end
    table.sort(counters, function(a, b) return a[2] > b[2] end)
    for i = tonumber(ARGV[3]) + 1, #counters do
        redis.call('HDEL', KEYS[1], counters[i][1]) -- missing is at the minimum, so the lowest lose the least
    end
end
if num_asked == 0 then
    return {}
end
return redis.call('HMGET', KEYS[1], unpack(ARGV, 6, 5 + num_asked))
