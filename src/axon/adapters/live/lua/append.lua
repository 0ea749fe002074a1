-- append: writes and publishes one chunk if epoch, seq and state allow. Times in milliseconds of the server's clock.
-- KEYS job, log. ARGV epoch, first seq, number of tokens, 1 for a terminal chunk, the chunk ("" writes nothing),
-- channel, ttl of an unfinished stream, ttl of an ended one. Returns the status and the log's last seq.
local job = redis.call('HMGET', KEYS[1], 'epoch', 'last', 'ended', 'cancel', 'until')
if not job[1] then
    return {'missing', 0}
end
local last = tonumber(job[2])
if job[3] then
    return {'done', last}
end
if job[1] ~= ARGV[1] then
    return {'fenced', last}
end
if tonumber(ARGV[2]) ~= last + 1 then
    return {'gap', last}
end
local terminal = ARGV[4] == '1'
if job[4] and (ARGV[3] ~= '0' or not terminal) then
    return {'cancel', last} -- once its end was asked for, a stream takes no more tokens
end
if not terminal then
    if job[5] then
        local time = redis.call('TIME')
        if tonumber(job[5]) <= time[1] * 1000 + math.floor(time[2] / 1000) then
            return {'absent', last}
        end
    end
end
if ARGV[5] == '' then
    return {'ok', last}
end
if ARGV[3] == '0' then
    redis.call('XADD', KEYS[2], job[2] .. '-*', 'chunk', ARGV[5]) -- a mark sorts right behind the last token
else
    last = last + ARGV[3]
    redis.call('XADD', KEYS[2], string.format('%.0f-0', last), 'chunk', ARGV[5])
end
if job[2] == '0' then
    redis.call('PEXPIRE', KEYS[2], ARGV[7] + 1000) -- the log outlives its job, never the other way round
end
if terminal then
    redis.call('HSET', KEYS[1], 'last', last, 'ended', 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[8])
    redis.call('PEXPIRE', KEYS[2], ARGV[8] + 1000)
else
    redis.call('HSET', KEYS[1], 'last', last)
end
redis.call('PUBLISH', ARGV[6], ARGV[5])
return {'ok', last}
