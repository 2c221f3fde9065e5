/** Records, and the limits that they remember starts for. */
export const LUA_RECORDS = `
-- A version is never used again. It follows the server's clock, so that a failover that undoes a put gives it to no other.
local function nextVersion(after)
  local floor = tonumber(call('GET', B .. 'vf') or 0)
  local time = call('TIME')
  return math.max(after + 1, floor + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
end

local function recordKey(kind) return B .. 'rec:' .. kind end

-- A record is {version, wakeAt, body as text}.
local function getRecord(kind, key)
  local text = call('HGET', recordKey(kind), key)
  return text and unpack1(text) or false
end

local function putRecord(kind, key, body, wakeAt)
  local was = getRecord(kind, key)
  call('HSET', recordKey(kind), key, pack({nextVersion(was and was[1] or 0), wakeAt, body}))
  if not was then call('ZADD', B .. 'rk:' .. kind, 0, key) end
  if wakeAt then call('ZADD', KRW, wakeAt, pair(kind, key))
  elseif was and was[2] then call('ZREM', KRW, pair(kind, key)) end
end

local function deleteRecord(kind, key)
  local was = getRecord(kind, key)
  if not was then return end
  if was[1] > tonumber(call('GET', B .. 'vf') or 0) then call('SET', B .. 'vf', was[1]) end
  call('HDEL', recordKey(kind), key)
  call('ZREM', B .. 'rk:' .. kind, key)
  if was[2] then call('ZREM', KRW, pair(kind, key)) end
end

local function holdRecords(now, holdUntil, limit)
  local found = {}
  if limit <= 0 then return found end
  local due = call('ZRANGEBYSCORE', KRW, '-inf', now, 'LIMIT', 0, limit)
  for at = 1, #due do
    local length = string.match(due[at], '^(%d+):')
    local kind = string.sub(due[at], #length + 2, #length + 1 + length)
    local key = string.sub(due[at], #length + 2 + length)
    local r = getRecord(kind, key)
    r[2] = holdUntil
    call('HSET', recordKey(kind), key, pack(r))
    call('ZADD', KRW, holdUntil, due[at])
    found[at] = {kind, key, r[1], r[2], r[3]}
  end
  return found
end

-- {kind, key, …} answers false or {version, wakeAt, body} for each.
function api.loadRecords(keys, args)
  begin(keys, args)
  local a, found = unpack1(args[1]), {}
  for at = 1, #a, 2 do found[#found + 1] = getRecord(a[at], a[at + 1]) end
  return pack(found)
end

-- {kind, after, limit, last} answers keys and records. With last, from the key before after down to the one after last.
function api.listRecords(keys, args)
  begin(keys, args)
  local a, found = unpack1(args[1]), {}
  local key, listed = B .. 'rk:' .. a[1]
  if a[4] then listed = call('ZREVRANGEBYLEX', key, a[2] and ('(' .. a[2]) or '+', '(' .. a[4], 'LIMIT', 0, a[3])
  else listed = names(key, a[2], '', false, a[3]) end
  for at = 1, #listed do
    local r = getRecord(a[1], listed[at])
    found[at] = {listed[at], r[1], r[2], r[3]}
  end
  return pack(found)
end

-- The limit that applies: an operator's override goes before what the jobs say. A limit is {concurrency, rate, per, strict}.
local function effective(limit, key)
  local r = getRecord('limit', key)
  if not r then return limit end
  local over = cjson.decode(r[3])
  if type(over) ~= 'table' then return limit end
  local given = {limit[1], limit[2], limit[3], limit[4]}
  if over.concurrency ~= nil then given[1] = over.concurrency ~= cjson.null and over.concurrency end
  if over.rate ~= nil then
    given[2], given[3] = false, false
    if over.rate ~= cjson.null then given[2], given[3] = over.rate.limit, over.rate.per end
  end
  return given
end

-- How many starts of a limit still count. a: the prefix of their keys, b: what comes after them.
local function startsOf(a, b) return call('ZLEXCOUNT', B .. 'rk:start', '[' .. a, '(' .. b) end

local function useOf(key, from, to)
  local c = call('HMGET', B .. 'gc:' .. key, 'a', 'x', 'u', 'y')
  return tonumber(c[1] or 0), tonumber(c[2] or 0), tonumber(c[3] or 0), tonumber(c[4] or 0), startsOf(from, to)
end

local function roomUnder(limit, key, from, to)
  local waiting, active, unstarted, retryable, starts = useOf(key, from, to)
  local slots, rate = math.huge, math.huge
  if limit[1] then slots = limit[1] - waiting - active - (limit[4] and retryable or 0) end
  if limit[2] then rate = limit[2] - waiting - unstarted - starts end
  return math.max(0, math.min(slots, rate))
end

-- {'a', key, count, limit or false, from, to}
local function admit(e)
  local most = e[3]
  if e[4] then most = math.min(most, roomUnder(effective(e[4], e[2]), e[2], e[5], e[6])) end
  if most <= 0 then return end
  local best = call('ZRANGE', B .. 'g:' .. e[2], 0, most - 1)
  for at = 1, #best do makeAvailable(best[at], rowOf(best[at])) end
end

-- {'s', key, key of the start, at, limit, body}
local function spend(e, now)
  local limit = effective(e[5], e[2])
  if not limit[2] or e[4] + limit[3] <= now then return end
  putRecord('start', e[3], e[6], e[4] + limit[3])
end
`;
