-- pin: pins a session to a version if it is pinned to none. Times in milliseconds.
-- KEYS pin. ARGV generation, version, moved_from, reason, ttl. Returns the four values of the pin that binds.
if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], 'generation', ARGV[1], 'version', ARGV[2], 'moved_from', ARGV[3], 'reason', ARGV[4])
    redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return redis.call('HMGET', KEYS[1], 'generation', 'version', 'moved_from', 'reason')
