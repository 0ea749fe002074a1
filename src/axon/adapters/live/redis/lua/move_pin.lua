-- move_pin: moves a session from one pin to another, if it still has the first. Times in milliseconds.
-- KEYS pin. ARGV old generation, old version, generation, version, moved_from, reason, ttl.
-- Returns the four values of the pin that binds, all nil where there is none.
local held = redis.call('HMGET', KEYS[1], 'generation', 'version')
if held[1] == ARGV[1] and held[2] == ARGV[2] then
    redis.call('HSET', KEYS[1], 'generation', ARGV[3], 'version', ARGV[4], 'moved_from', ARGV[5], 'reason', ARGV[6])
    redis.call('PEXPIRE', KEYS[1], ARGV[7])
end
return redis.call('HMGET', KEYS[1], 'generation', 'version', 'moved_from', 'reason')
