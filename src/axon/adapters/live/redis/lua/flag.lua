-- flag: asks for a job's end, or says that a reader is there. Times in milliseconds of the server's clock.
-- KEYS job, log. ARGV 1 to cancel, 2 if its client asked for that, 4 if its client was told that it was not accepted,
-- reader ttl ("" says nothing), channel, ttl of an unfinished stream, channel of the stops, job id.
-- Returns 1, or 0 when the job is missing or ended, or when a client was told that it is accepted and this one not.
local job = redis.call('HMGET', KEYS[1], 'epoch', 'ended', 'until', 'confirmed')
if not job[1] or job[2] or (ARGV[1] == '4' and job[4]) then
    return 0
end
if ARGV[2] ~= '' and job[3] then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('HSET', KEYS[1], 'until', math.max(tonumber(job[3]), now + ARGV[2]))
end
if ARGV[1] ~= '0' then
    if ARGV[1] == '1' then
        redis.call('HSETNX', KEYS[1], 'cancel', 1)
    elseif redis.call('HGET', KEYS[1], 'cancel') ~= '4' then
        redis.call('HSET', KEYS[1], 'cancel', ARGV[1])
    end
    redis.call('PUBLISH', ARGV[3], '')
    redis.call('PUBLISH', ARGV[5], ARGV[6])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4] + 1000)
return 1
