-- disappear: a worker leaves, if this incarnation has its name. No times.
-- KEYS workers (name to "until incarnation presence"). ARGV worker, incarnation.
local held = redis.call('HGET', KEYS[1], ARGV[1])
if held and string.match(held, '^%d+ (%S+) ') == ARGV[2] then
    redis.call('HDEL', KEYS[1], ARGV[1])
end
