-- forget: an ended job and its log leave sooner than their time. Times in milliseconds.
-- KEYS job, log. ARGV ttl (0 is now). Returns 1, or 0 when the job is missing or runs.
if not redis.call('HGET', KEYS[1], 'ended') then
    return 0
end
if ARGV[1] == '0' then
    redis.call('DEL', KEYS[1], KEYS[2])
else
    redis.call('PEXPIRE', KEYS[1], ARGV[1], 'LT')
    redis.call('PEXPIRE', KEYS[2], ARGV[1] + 1000, 'LT')
end
return 1
