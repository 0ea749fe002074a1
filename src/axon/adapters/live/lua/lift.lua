-- lift: raises a tenant's counter to a floor, never lowers it. Times in milliseconds.
-- KEYS pool. ARGV ttl of an idle pool, tenant, floor.
local counter = redis.call('HGET', KEYS[1], ARGV[2])
if not counter or tonumber(counter) < tonumber(ARGV[3]) then
    redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
