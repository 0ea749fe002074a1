-- confirm_pin: keeps a pin under which a turn was accepted, with its move told, if it is still the same. Times in milliseconds.
-- KEYS pin. ARGV generation, version, ttl. Returns the four values of the pin that binds, all nil where there is none.
local held = redis.call('HMGET', KEYS[1], 'generation', 'version')
if held[1] == ARGV[1] and held[2] == ARGV[2] then
    redis.call('HSET', KEYS[1], 'moved_from', '', 'reason', '')
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return redis.call('HMGET', KEYS[1], 'generation', 'version', 'moved_from', 'reason')
