-- release: gives a job up if it is held under this epoch, with its crash count, and wakes its listeners. No times.
-- KEYS job. ARGV epoch, channel, crash count. Returns 1 when given up.
local job = redis.call('HMGET', KEYS[1], 'epoch', 'ended')
if job[1] ~= ARGV[1] or job[2] then
    return 0
end
redis.call('HSET', KEYS[1], 'owner', '', 'crashes', ARGV[3])
redis.call('PUBLISH', ARGV[2], '')
return 1
