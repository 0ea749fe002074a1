-- open: makes a job's stream unless it is there. Times in milliseconds of the server's clock.
-- KEYS job, log. ARGV body, reader ttl ("" waits for none), ttl of an unfinished stream. Returns 1 when made.
if redis.call('EXISTS', KEYS[1]) == 1 then
    return 0
end
redis.call('DEL', KEYS[2]) -- entries that outlived their job would be taken for its own
redis.call('HSET', KEYS[1], 'body', ARGV[1], 'epoch', 0, 'owner', '', 'last', 0)
if ARGV[2] ~= '' then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('HSET', KEYS[1], 'until', now + ARGV[2])
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
