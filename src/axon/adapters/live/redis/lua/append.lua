-- append: writes and publishes a chunk for each of several jobs if epoch, seq and state allow. Times in milliseconds of
-- the server's clock. KEYS job and log of each job in turn. ARGV ttl of an unfinished stream, ttl of an ended one, then
-- for each job: epoch, first seq, number of tokens, 1 for a terminal chunk, the chunk ("" writes nothing), channel.
-- Returns for each job the status and the log's last seq.
local function append(key, epoch, first, num, is_terminal, chunk, channel)
    local job = redis.call('HMGET', KEYS[key], 'epoch', 'last', 'ended', 'cancel', 'until')
    if not job[1] then
        return {'missing', 0}
    end
    local last = tonumber(job[2])
    if job[3] then
        return {'done', last}
    end
    if job[1] ~= epoch then
        return {'fenced', last}
    end
    if tonumber(first) ~= last + 1 then
        return {'gap', last}
    end
    local terminal = is_terminal == '1'
    if job[4] and (num ~= '0' or not terminal) then
        return {'cancel', last} -- once its end was asked for, a stream takes no more tokens
    end
    if not terminal and job[5] then
        local time = redis.call('TIME')
        if tonumber(job[5]) <= time[1] * 1000 + math.floor(time[2] / 1000) then
            return {'absent', last}
        end
    end
    if chunk == '' then
        return {'ok', last}
    end
    if num == '0' then
        redis.call('XADD', KEYS[key + 1], job[2] .. '-*', 'chunk', chunk) -- a mark sorts right behind the last token
    else
        last = last + num
        redis.call('XADD', KEYS[key + 1], string.format('%.0f-0', last), 'chunk', chunk)
    end
    if job[2] == '0' then
        redis.call('PEXPIRE', KEYS[key + 1], ARGV[1] + 1000) -- the log outlives its job, never the other way round
    end
    if terminal then
        redis.call('HSET', KEYS[key], 'last', last, 'ended', 1)
        redis.call('PEXPIRE', KEYS[key], ARGV[2])
        redis.call('PEXPIRE', KEYS[key + 1], ARGV[2] + 1000)
    else
        redis.call('HSET', KEYS[key], 'last', last)
    end
    redis.call('PUBLISH', channel, chunk)
    return {'ok', last}
end

local answers = {}
for i = 1, #KEYS / 2 do
    answers[i] = append(2 * i - 1, unpack(ARGV, 6 * i - 3, 6 * i + 2))
end
return answers
