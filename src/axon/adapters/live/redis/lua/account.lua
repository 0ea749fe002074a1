-- account: what was taken of somebody's limits. Times in milliseconds of the server's clock. The twin is memory/accounts.py.
-- KEYS account (levels, budgets, sums), crowd (jobs by when they lapse), jobs (set aside, used, waits), settled (jobs by
-- until when). ARGV admit | beat | settle, and its arguments in msgpack. Returns the standing in msgpack.
local verb, ask = ARGV[1], cmsgpack.unpack(ARGV[2])
local bounds = ask.bounds
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local account = {}
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
    account[flat[i]] = flat[i + 1]
end
local changed = {}

local function number(name, default)
    return tonumber(account[name]) or default
end

local function set(name, value)
    account[name] = string.format('%.17g', value)
    changed[name] = true
end

local function set_text(name, value)
    account[name] = value
    changed[name] = true
end

local function job_of(id)
    local text = redis.call('HGET', KEYS[3], id)
    if not text then
        return nil
    end
    local reserved, used, waits = string.match(text, '([^:]+):([^:]+):([^:]+)')
    return {reserved = tonumber(reserved), used = tonumber(used), waits = waits == '1'}
end

-- The sums of those who are in follow every change of a job: sign -1 before it, 1 after it.
local function sum(job, sign)
    local left = math.max(0, job.reserved - job.used) * sign
    set('work', number('work', 0) + left)
    if job.waits then
        set('waiting', number('waiting', 0) + sign)
        set('waiting_work', number('waiting_work', 0) + left)
    end
end

local function keep(id, job, is_in)
    redis.call('HSET', KEYS[3], id, string.format('%.17g:%.17g:%d', job.reserved, job.used, job.waits and 1 or 0))
    if is_in then
        sum(job, 1)
    end
end

local function refill(name, per_minute)
    if per_minute > 0 then
        local amount = number(name, per_minute)
        local since = math.max(0, now - number(name .. '_at', now))
        set(name, math.min(per_minute, amount + since * per_minute / 60000))
        set(name .. '_at', now)
    end
end

local capacity = bounds.tokens_per_minute
local function take(tokens) -- less than none gives back
    if capacity > 0 then
        set('tokens', math.min(capacity, number('tokens', capacity) - tokens))
    end
end

local function spent_of(name)
    local window, spent = string.match(account['budget:' .. name] or '', '([^:]+):([^:]+)')
    return tonumber(window) or -1, tonumber(spent) or 0
end

local function spend(tokens)
    for _, name in ipairs({'day', 'month'}) do
        local window, spent = spent_of(name)
        if window >= 0 and tokens ~= 0 then
            set_text('budget:' .. name, string.format('%.0f:%.17g', window, spent + tokens))
        end
    end
end

local function lapse(id)
    local job = job_of(id)
    redis.call('ZREM', KEYS[2], id)
    if not job then
        return
    end
    sum(job, -1)
    take(-math.max(0, job.reserved - job.used))
    if job.used > 0 then
        job.reserved = job.used
        keep(id, job, false)
    else
        redis.call('HDEL', KEYS[3], id)
    end
end

local function begin()
    refill('requests', bounds.requests_per_minute)
    refill('tokens', capacity)
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
        lapse(id)
    end
    if redis.call('ZCARD', KEYS[2]) == 0 then
        for _, name in ipairs({'work', 'waiting', 'waiting_work'}) do
            set(name, 0)
        end
    end
    for _, budget in ipairs(bounds.budgets) do
        if budget.window > spent_of(budget.name) and budget.seed then
            -- The records have ended turns alone; what runs is known here. Who has lapsed and did not come back is past.
            local used, jobs = 0, redis.call('HGETALL', KEYS[3])
            for i = 1, #jobs, 2 do
                if redis.call('ZSCORE', KEYS[2], jobs[i]) then
                    used = used + tonumber(string.match(jobs[i + 1], ':([^:]+):'))
                else
                    redis.call('HDEL', KEYS[3], jobs[i])
                end
            end
            set_text('budget:' .. budget.name, string.format('%.0f:%.17g', budget.window, budget.seed + used))
        end
    end
end

local function unseeded()
    local names = {}
    for _, budget in ipairs(bounds.budgets) do
        if spent_of(budget.name) < budget.window then
            names[#names + 1] = budget.name
        end
    end
    return names
end

local function standing(refused, reserved)
    local answer = {
        refused = refused or '', unseeded = unseeded(), reserved = reserved or {}, spent = {},
        requests = number('requests', 0), tokens = number('tokens', 0), jobs = redis.call('ZCARD', KEYS[2]),
        waiting = number('waiting', 0), work = number('work', 0), waiting_work = number('waiting_work', 0),
        mean_output = number('mean_output', -1), mean_s = number('mean_s', -1)
    }
    for _, name in ipairs({'day', 'month'}) do
        local window, spent = spent_of(name)
        if window >= 0 then
            answer.spent[name] = spent
        end
    end
    return answer
end

local function refusal(job, is_in, more, held) -- held: what is set aside for its other jobs
    local is_held = false
    for _, budget in ipairs(bounds.budgets) do
        local _, spent = spent_of(budget.name)
        local left = budget.limit - spent
        if left <= 0 or left < ask.least then
            return 'budget'
        end
        is_held = is_held or left - held < ask.least
    end
    if is_held then
        return 'budget_held'
    end
    local function full(bound, taken)
        return bound > 0 and taken >= bound
    end
    if not is_in then
        if bounds.requests_per_minute > 0 and number('requests', 0) < 1 then
            return 'requests'
        elseif full(bounds.jobs, redis.call('ZCARD', KEYS[2])) then
            return 'jobs'
        elseif full(bounds.waiting, number('waiting', 0)) then
            return 'waiting'
        elseif full(bounds.work, number('work', 0)) then
            return 'work'
        elseif full(bounds.waiting_work, number('waiting_work', 0)) then
            return 'waiting_work'
        end
    end
    local least = math.min(ask.least, capacity) - (job and job.reserved or 0)
    if capacity > 0 and number('tokens', capacity) < math.max(more, least) then
        return 'tokens'
    end
    return nil
end

local function within(tokens) -- no more can be set aside than the bucket is deep
    return capacity > 0 and math.min(tokens, capacity) or tokens
end

local function admit()
    local job = job_of(ask.job_id)
    local is_in = redis.call('ZSCORE', KEYS[2], ask.job_id) and true or false
    local more = math.max(0, within(ask.tokens) - (job and job.reserved or 0))
    if #unseeded() > 0 then
        return standing()
    end
    local own = job and is_in and math.max(0, job.reserved - job.used) or 0
    local refused = refusal(job, is_in, more, number('work', 0) - own)
    if refused then
        return standing(refused)
    end
    job = job or {reserved = 0, used = 0, waits = true}
    if is_in then
        sum(job, -1)
    elseif bounds.requests_per_minute > 0 then
        set('requests', number('requests', 0) - 1)
    end
    redis.call('ZREM', KEYS[4], ask.job_id)
    take(more)
    job.reserved = job.reserved + more
    redis.call('ZADD', KEYS[2], now + ask.ttl_ms, ask.job_id)
    keep(ask.job_id, job, true)
    return standing()
end

local function beat(each)
    local job = job_of(each.job_id)
    if redis.call('ZSCORE', KEYS[2], each.job_id) then
        sum(job, -1)
    end
    if not job then
        local reserved = within(each.reserved)
        job = {reserved = math.max(reserved, each.used), used = 0, waits = true}
        take(math.max(0, reserved - each.used))
    end
    local used = math.max(job.used, each.used)
    spend(used - job.used)
    job.used = used
    if used > job.reserved then
        take(used - job.reserved)
        job.reserved = used
    end
    local more = each.more
    if capacity > 0 then
        more = math.floor(math.min(more, math.max(0, number('tokens', capacity))))
    end
    take(more)
    job.reserved = job.reserved + more
    if each.waits ~= nil then
        job.waits = each.waits
    end
    redis.call('ZADD', KEYS[2], now + ask.ttl_ms, each.job_id)
    keep(each.job_id, job, true)
    return job.reserved
end

local function beats()
    local reserved = {}
    for _, each in ipairs(ask.beats) do
        if each.again then
            redis.call('ZREM', KEYS[4], each.job_id)
        end
        if not redis.call('ZSCORE', KEYS[4], each.job_id) then
            reserved[each.job_id] = beat(each)
        end
    end
    return standing(nil, reserved)
end

local function learn(name, newest)
    local mean = number(name, -1)
    set(name, mean < 0 and newest or mean + ask.learning * (newest - mean))
end

local function settle()
    redis.call('ZADD', KEYS[4], now + ask.settled_ms, ask.job_id)
    local job = job_of(ask.job_id)
    if not job then
        return {}
    end
    if redis.call('ZREM', KEYS[2], ask.job_id) == 1 then
        sum(job, -1)
    end
    redis.call('HDEL', KEYS[3], ask.job_id)
    take(ask.used - job.reserved)
    if ask.uncounted and bounds.requests_per_minute > 0 then
        set('requests', math.min(bounds.requests_per_minute, number('requests', 0) + 1))
    end
    spend(ask.used - job.used)
    if ask.output then
        learn('mean_output', ask.output)
        learn('mean_s', ask.took_s)
    end
    return {}
end

begin()
local answer
if verb == 'admit' then
    answer = admit()
elseif verb == 'beat' then
    answer = beats()
else
    answer = settle()
end
local fields = {}
for name in pairs(changed) do
    fields[#fields + 1] = name
    fields[#fields + 1] = account[name]
end
if #fields > 0 then
    redis.call('HSET', KEYS[1], unpack(fields))
end
local stays = ask.idle_ms
if capacity > 0 then
    stays = stays + math.max(0, capacity - number('tokens', capacity)) / capacity * 60000
end
for i = 1, #KEYS do
    redis.call('PEXPIRE', KEYS[i], math.ceil(stays))
end
return cmsgpack.pack(answer)
