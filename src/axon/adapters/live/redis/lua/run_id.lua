-- run_id: names this life of the server and of what it holds. Times in milliseconds.
-- KEYS marker. ARGV a new marker, its ttl. Returns the server's run id and the marker: a flush takes the latter.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
return run_id .. ':' .. redis.call('GET', KEYS[1])
