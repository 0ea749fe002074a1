-- present: the presences whose time holds; the others are forgotten. Times in milliseconds of the server's clock.
-- KEYS workers (name to "until incarnation presence"). Returns the presences, in no order.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all = redis.call('HGETALL', KEYS[1])
local found = {}
for index = 1, #all, 2 do
    local ends, presence = string.match(all[index + 1], '^(%d+) %S+ (.*)$')
    if tonumber(ends) > now then
        found[#found + 1] = presence
    else
        redis.call('HDEL', KEYS[1], all[index])
    end
end
return found
