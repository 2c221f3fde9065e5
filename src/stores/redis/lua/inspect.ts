/** Queries for people. Each call reads a bounded number of rows; the caller goes on from its cursor. */
export const LUA_INSPECT = `
-- How many members of a line stand before a position.
local function placeOf(key, rank, id)
  local score = call('ZSCORE', key, id)
  if score and tonumber(score) == rank then return call('ZRANK', key, id) end
  local place = call('ZCOUNT', key, '-inf', '(' .. string.format('%.0f', rank))
  local ties = call('ZRANGEBYSCORE', key, rank, rank)
  for at = 1, #ties do if before(ties[at], id) then place = place + 1 end end
  return place
end

local function between(at, from, to)
  if not from and not to then return true end
  return at and (not from or at >= from) and (not to or at < to)
end

-- f: {queue, type, state, dead, live, created from, created before, finished from, finished before, text}
local function wanted(r, f, key)
  if f[1] and r[QUEUE] ~= f[1] then return false end
  if f[2] and r[TYPE] ~= f[2] then return false end
  if f[3] and r[STATE] ~= f[3] then return false end
  if f[4] and r[DEAD] ~= f[4] then return false end
  if f[5] and (r[STATE] >= COMPLETED) == (f[5] == 1) then return false end
  if not between(r[CREATED], f[6], f[7]) or not between(r[FINISHED], f[8], f[9]) then return false end
  if not f[10] then return true end
  local v = call('HMGET', key, 'p', 'o')
  if string.find(v[1], f[10], 1, true) then return true end
  return v[2] and string.find(v[2], '"redact"', 1, true) and true or false
end

local function scannedIds(a)
  local key, after, at, reverse, limit = B .. a[1] .. ':' .. a[2], a[3], a[4], a[5], a[6]
  if a[1] == 'i' then
    if reverse then return call('ZREVRANGEBYLEX', key, after and ('(' .. after) or '+', '-', 'LIMIT', 0, limit) end
    return call('ZRANGEBYLEX', key, after and ('(' .. after) or '-', '+', 'LIMIT', 0, limit)
  end
  if not after then return call(reverse and 'ZREVRANGE' or 'ZRANGE', key, 0, limit - 1) end
  local place = placeOf(key, at, after)
  if not reverse then
    local score = call('ZSCORE', key, after)
    if score and tonumber(score) == at then place = place + 1 end
    return call('ZRANGE', key, place, place + limit - 1)
  end
  if place == 0 then return {} end
  local found, turned = call('ZRANGE', key, math.max(0, place - limit), place - 1), {}
  for each = #found, 1, -1 do turned[#turned + 1] = found[each] end
  return turned
end

-- {'i' or 'dl', tenant, after, after instant, reverse, most read, filter, most found, is brief} answers how many were read, the last
-- one and when it ended, whether more follow, and the rows that match; only their number if nothing may be found.
function api.scan(keys, args)
  begin(keys, args)
  local a, parts, bytes, found, read = unpack1(args[1]), {''}, 0, 0, 0
  local ids, whole = scannedIds(a), a[9] and readBrief or readRow
  local last, lastAt = false, false
  for at = 1, #ids do
    local r = rowOf(ids[at])
    read, last, lastAt = at, ids[at], r[FINISHED] or 0
    if wanted(r, a[7], jobKey(ids[at])) then
      found = found + 1
      if a[8] > 0 then
        bytes = bytes + answerRow(parts, ids[at], whole(ids[at]))
        if found >= a[8] or bytes > MOST_BYTES then break end
      end
    end
  end
  parts[1] = pack(read, last, lastAt, read < #ids or #ids == a[6], found)
  return table.concat(parts)
end

-- {after, from, to, limit} or {queue}: answers queues and their counts by state and type.
function api.depths(keys, args)
  begin(keys, args)
  local a, answer = unpack1(args[1]), {}
  local queues = #a == 1 and a or names(B .. 'qs', a[1], a[2], a[3], a[4])
  for at = 1, #queues do
    answer[#answer + 1] = queues[at]
    answer[#answer + 1] = call('HGETALL', B .. 'n:' .. queues[at])
  end
  return pack(answer)
end

-- {key, after, from, to, limit} answers names.
function api.listNames(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  return pack(names(B .. a[1], a[2], a[3], a[4], a[5]))
end

function api.uniqueKeys(keys, args)
  begin(keys, args)
  local ids, found = unpack1(args[1]), {}
  for at = 1, #ids do
    local r = rowOf(ids[at])
    found[at] = r and r[UNIQUE] or false
  end
  return pack(found)
end

-- {key, from, to, …} answers for each: waiting, available, active, unstarted, retryable, starts, and when the first ends. Of
-- many starts, only the first are read.
function api.limitRows(keys, args)
  begin(keys, args)
  local a, answer = unpack1(args[1]), {}
  for at = 1, #a, 3 do
    local key, from, to = a[at], a[at + 1], a[at + 2]
    local waiting, active, unstarted, retryable, starts = useOf(key, from, to)
    local nextAt = false
    local first = names(B .. 'rk:start', false, from, to, 200)
    for each = 1, #first do nextAt = earlier(nextAt, getRecord('start', first[each])[2]) end
    answer[#answer + 1] = {call('ZCARD', B .. 'g:' .. key), waiting, active, unstarted, retryable, starts, nextAt}
  end
  return pack(answer)
end

-- {key, state or false, limit} answers the first ids of its live jobs in that state, or in any.
function api.limitIds(keys, args)
  begin(keys, args)
  local a, found = unpack1(args[1]), {}
  for state = a[2] or PENDING, a[2] or RETRYABLE do
    local some = call('ZRANGEBYSCORE', B .. 'gj:' .. a[1], state, state, 'LIMIT', 0, a[3])
    for at = 1, #some do found[#found + 1] = some[at] end
  end
  if not a[2] then table.sort(found, before) end
  while #found > a[3] do found[#found] = nil end
  return pack(found)
end

-- {line, rank, id}: a line is {'q', queue}, {'g', limit key} or {'f', queue, fair key}.
function api.ahead(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local line = a[1]
  local key = B .. (line[1] == 'q' and 'r:' or 'g:') .. line[2]
  if line[1] == 'f' then key = fairJobs(math.floor(a[2] / RANK_SPAN), line[2], line[3]) end
  return pack(placeOf(key, a[2], a[3]))
end

-- {queue, most keys} answers {key, rank of its best job, jobs}…
function api.shares(keys, args)
  begin(keys, args)
  local a, answer = unpack1(args[1]), {}
  local priorities = call('ZRANGE', B .. 'fp:' .. a[1], 0, -1)
  for at = 1, #priorities do
    local fair = names(fairKeys(priorities[at], a[1]), false, '', false, a[2] - #answer)
    for each = 1, #fair do
      local jobs = fairJobs(priorities[at], a[1], fair[each])
      answer[#answer + 1] = {fair[each], firstScore(jobs), call('ZCARD', jobs)}
    end
    if #answer >= a[2] then break end
  end
  return pack(answer)
end

-- {queue…} answers for each the job that became due first: false or {id, rank, created}. Jumps from priority to priority.
function api.oldest(keys, args)
  begin(keys, args)
  local a, answer = unpack1(args[1]), {}
  for at = 1, #a do
    local from, best, bestAt = 0, false, false
    while true do
      local next = call('ZRANGEBYSCORE', B .. 'r:' .. a[at], from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      if not next[1] then break end
      local rank = tonumber(next[2])
      if not best or rank % RANK_SPAN < bestAt then best, bestAt = {next[1], rank}, rank % RANK_SPAN end
      from = (math.floor(rank / RANK_SPAN) + 1) * RANK_SPAN
    end
    if best then best[3] = rowOf(best[1])[CREATED] end
    answer[at] = best
  end
  return pack(answer)
end

-- {the id to begin at or false, count, newest first} answers positions and rows of events.
function api.readEvents(keys, args)
  begin(keys, args)
  local a, answer, rows = unpack1(args[1]), {}, nil
  if a[3] then rows = call('XREVRANGE', B .. 'e', a[1] or '+', '-', 'COUNT', a[2])
  else rows = call('XRANGE', B .. 'e', a[1] or '-', '+', 'COUNT', a[2]) end
  for at = 1, #rows do
    answer[#answer + 1] = rows[at][1]
    answer[#answer + 1] = rows[at][2][4]
  end
  return pack(answer)
end

-- {id, after, limit} answers the number of the line before the first, and lines.
function api.readLog(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local key = B .. 'l:' .. a[1]
  local gone = tonumber(call('HGET', jobKey(a[1]), 'n') or 0) - call('LLEN', key)
  local from = math.max(0, a[2] - gone)
  return pack(gone + from, call('LRANGE', key, from, from + a[3] - 1))
end
`;
