-- claim: takes a job from one epoch to a higher one. Times in milliseconds of the server's clock.
-- KEYS job, log. ARGV owner, the epoch to take it over from, ttl of an unfinished stream. Returns the epoch and the
-- crash count, or nil.
local job = redis.call('HMGET', KEYS[1], 'epoch', 'ended', 'crashes')
if job[1] ~= ARGV[2] or job[2] then
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = math.max(tonumber(job[1]), now) + 1 -- grows even over a flush
redis.call('HSET', KEYS[1], 'epoch', epoch, 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3] + 1000)
return {epoch, tonumber(job[3] or 0)}
