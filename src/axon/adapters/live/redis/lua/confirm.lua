-- confirm: notes that a client was told that the job is accepted. No times.
-- KEYS job. Returns 1, or 0 when a client was told before that it was not.
if redis.call('HGET', KEYS[1], 'cancel') == '4' then
    return 0
end
if redis.call('EXISTS', KEYS[1]) == 1 then
    redis.call('HSET', KEYS[1], 'confirmed', 1)
end
return 1
