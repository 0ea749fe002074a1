-- read: a job and its log from a seq on, as of one instant. Times in milliseconds of the server's clock.
-- KEYS job, log. ARGV seq. Returns body, epoch, owner, last, ended, cancelled (2 if its client asked for that, 3
-- if nobody did and its reader is away, 4 if its client was told that it was not accepted) and the chunks; nil when missing.
local job = redis.call('HMGET', KEYS[1], 'body', 'epoch', 'owner', 'last', 'ended', 'cancel', 'until')
if not job[1] then
    return false
end
local cancelled = tonumber(job[6] or 0)
if cancelled == 0 and job[7] and not job[5] then
    local time = redis.call('TIME')
    if tonumber(job[7]) <= time[1] * 1000 + math.floor(time[2] / 1000) then
        cancelled = 3
    end
end
local chunks = {}
for i, entry in ipairs(redis.call('XRANGE', KEYS[2], ARGV[1] .. '-0', '+')) do
    chunks[i] = entry[2][2]
end
return {job[1], tonumber(job[2]), job[3], tonumber(job[4]), job[5] and 1 or 0, cancelled, chunks}
