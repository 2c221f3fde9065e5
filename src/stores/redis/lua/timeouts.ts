/**
 * Leased timeouts. One that is neither dead nor leased is in `td` and in the line of its destination, by its due time. A leased
 * one is in `tl`, by the end of its lease, whether that has come or not.
 */
export const LUA_TIMEOUTS = `
local T_DEST, T_DUE, T_PAYLOAD, T_HEADERS, T_KEY, T_SAGA, T_WALL, T_OWNER, T_UNTIL, T_TRIES, T_DEAD, T_ERROR, T_SCOPE = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13

local function timeoutKey(id) return B .. 't:' .. id end

local function timeoutOf(id)
  local text = call('GET', timeoutKey(id))
  return text and unpack1(text) or false
end

local function placeTimeout(id, t)
  if t[T_UNTIL] then
    call('ZADD', B .. 'tl', t[T_UNTIL], id)
    call('ZADD', B .. 'tl:' .. t[T_DEST], t[T_UNTIL], id)
    call('ZADD', B .. 'tv', 0, id)
  elseif t[T_DEAD] then call('ZADD', B .. 'tx', 0, id)
  else
    call('ZADD', B .. 'td', t[T_DUE], id)
    call('ZADD', B .. 'td:' .. t[T_DEST], t[T_DUE], id)
  end
end

local function unplaceTimeout(id, t)
  if t[T_UNTIL] then
    call('ZREM', B .. 'tl', id)
    call('ZREM', B .. 'tl:' .. t[T_DEST], id)
    call('ZREM', B .. 'tv', id)
  elseif t[T_DEAD] then call('ZREM', B .. 'tx', id)
  else
    call('ZREM', B .. 'td', id)
    call('ZREM', B .. 'td:' .. t[T_DEST], id)
  end
end

local function writeTimeout(id, o, t)
  unplaceTimeout(id, o)
  placeTimeout(id, t)
  call('SET', timeoutKey(id), pack(t))
end

local function copyTimeout(t)
  local copy = {}
  for at = 1, T_SCOPE do copy[at] = t[at] end
  return copy
end

local function deleteTimeout(id, t)
  unplaceTimeout(id, t)
  call('DEL', timeoutKey(id))
  call('ZREM', B .. 'ti', id)
  if t[T_KEY] then call('HDEL', B .. 'tk', pair(t[T_SCOPE], t[T_KEY])) end
  if t[T_SAGA] then call('ZREM', B .. 'ts:' .. t[T_SAGA], id) end
end

-- {id, destination, dueAt, payload, headers, key, saga, wall clock, scope}. Returns whether it was stored.
local function insertTimeout(a)
  local id = a[1]
  if call('EXISTS', timeoutKey(id)) == 1 then return false end
  if a[6] then
    local name = pair(a[9], a[6])
    local other = call('HGET', B .. 'tk', name)
    if other then deleteTimeout(other, timeoutOf(other)) end
    call('HSET', B .. 'tk', name, id)
  end
  local t = {a[2], a[3], a[4], a[5], a[6], a[7], a[8], false, false, 0, false, false, a[9]}
  call('SET', timeoutKey(id), pack(t))
  call('ZADD', B .. 'ti', 0, id)
  if a[7] then call('ZADD', B .. 'ts:' .. a[7], 0, id) end
  placeTimeout(id, t)
  return true
end

-- Why the owner does not hold it: 1 gone, 2 unleased, 3 stolen, 4 expired; false if it does.
local function leaseLoss(t, owner, now)
  if not t then return 1 end
  if not t[T_OWNER] then return 2 end
  if t[T_OWNER] ~= owner then return 3 end
  return t[T_UNTIL] <= now and 4 or false
end

-- {'i', id}, {'k', scope, key} or {'s', saga}. Returns how many were free and how many were leased.
local function revoke(which, now)
  local ids = {}
  if which[1] == 'i' then ids = {which[2]}
  elseif which[1] == 's' then ids = call('ZRANGE', B .. 'ts:' .. which[2], 0, -1)
  else ids = {call('HGET', B .. 'tk', pair(which[2], which[3])) or nil} end
  local pending, leased = 0, 0
  for at = 1, #ids do
    local t = timeoutOf(ids[at])
    if t then
      deleteTimeout(ids[at], t)
      if t[T_UNTIL] and t[T_UNTIL] > now then leased = leased + 1 else pending = pending + 1 end
    end
  end
  return pending, leased
end

function api.insertTimeouts(keys, args)
  begin(keys, args)
  local a, answers = unpack1(args[1]), {}
  for at = 1, #a[2] do
    answers[at] = insertTimeout(a[2][at])
    if answers[at] then hintTimeout(a[2][at][3], a[1]) end
  end
  finish()
  return pack(answers)
end

-- Adds what is due: free ones of a line, and those whose lease in the other line is over. Of many, only some are looked at.
local function addDue(free, leased, now, most, found)
  local due = call('ZRANGEBYSCORE', free, '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  local first = #found
  for at = 1, #due, 2 do found[#found + 1] = {due[at], tonumber(due[at + 1])} end
  local over = call('ZRANGEBYSCORE', leased, '-inf', now, 'LIMIT', 0, 1000)
  for at = 1, #over do
    local dueAt = timeoutOf(over[at])[T_DUE]
    if dueAt <= now then found[#found + 1] = {over[at], dueAt} end
  end
  return #over > 0 and #found - first > most
end

local function byDue(x, y)
  if x[2] ~= y[2] then return x[2] < y[2] end
  return before(x[1], y[1])
end

-- {now, lease until, owner, limit, {destination, limit, …} or false} answers ids and rows, the first one first.
function api.claimTimeouts(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local now, limit, found, parts, bytes = a[1], a[4], {}, {}, 0
  if not a[5] then addDue(B .. 'td', B .. 'tl', now, limit, found) end
  for at = 1, a[5] and #a[5] or 0, 2 do
    local some = {}
    if addDue(B .. 'td:' .. a[5][at], B .. 'tl:' .. a[5][at], now, a[5][at + 1], some) then table.sort(some, byDue) end
    for each = 1, math.min(#some, a[5][at + 1]) do found[#found + 1] = some[each] end
  end
  table.sort(found, byDue)
  for at = 1, math.min(#found, limit) do
    local id = found[at][1]
    local o = timeoutOf(id)
    local t = copyTimeout(o)
    t[T_OWNER], t[T_UNTIL] = a[3], a[2]
    writeTimeout(id, o, t)
    local text = pack(id, t)
    parts[at] = text
    bytes = bytes + #text
    if bytes > MOST_BYTES then break end
  end
  finish()
  return table.concat(parts)
end

-- {what, now, {id, owner, …}…}: 'd' removes, 'r' releases {dueAt, error, dead}, 'x' extends {until}. Answers 0 or the loss.
function api.changeLeases(keys, args)
  begin(keys, args)
  local a, answers = unpack1(args[1]), {}
  local what, now = a[1], a[2]
  for at = 1, #a[3] do
    local one = a[3][at]
    local id, o = one[1], timeoutOf(one[1])
    local loss = one[2] and leaseLoss(o, one[2], now) or false
    answers[at] = loss or 0
    if not loss and o then
      if what == 'd' then deleteTimeout(id, o)
      else
        local t = copyTimeout(o)
        if what == 'x' then t[T_UNTIL] = one[3]
        else
          t[T_OWNER], t[T_UNTIL], t[T_DUE] = false, false, one[3] or o[T_DUE]
          if one[4] then t[T_TRIES], t[T_ERROR] = o[T_TRIES] + 1, one[4] end
          if one[5] then t[T_DEAD] = now end
        end
        writeTimeout(id, o, t)
      end
    end
    if what == 'r' and not loss and not one[5] then hintTimeout(one[3] or now, now) end
  end
  finish()
  return pack(answers)
end

-- Frees expired leases, a bounded number of them. Answers how many.
function api.reap(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local over = call('ZRANGEBYSCORE', B .. 'tl', '-inf', a[1], 'LIMIT', 0, a[2])
  for at = 1, #over do
    local o = timeoutOf(over[at])
    local t = copyTimeout(o)
    t[T_OWNER], t[T_UNTIL] = false, false
    writeTimeout(over[at], o, t)
  end
  return pack(#over)
end

function api.cancelTimeouts(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local pending, leased = revoke(a[2], a[1])
  finish()
  return pack(pending, leased)
end

-- {'q', now, {id}…} requeues dead ones; {'m', now, {id, from, to}…} moves free ones. Answers how many.
function api.moveTimeouts(keys, args)
  begin(keys, args)
  local a, moved = unpack1(args[1]), 0
  for at = 1, #a[3] do
    local one = a[3][at]
    local o = timeoutOf(one[1])
    local t = o and copyTimeout(o)
    hintTimeout(one[3] or a[2], a[2])
    if a[1] == 'q' and o and o[T_DEAD] then
      t[T_DEAD], t[T_TRIES], t[T_DUE] = false, 0, a[2]
      writeTimeout(one[1], o, t)
      moved = moved + 1
    elseif a[1] == 'm' and o and o[T_DUE] == one[2] and not o[T_OWNER] and not o[T_DEAD] then
      t[T_DUE] = one[3]
      writeTimeout(one[1], o, t)
      moved = moved + 1
    end
  end
  finish()
  return pack(moved)
end

function api.loadTimeouts(keys, args)
  begin(keys, args)
  local ids, found = unpack1(args[1]), {}
  for at = 1, #ids do found[at] = timeoutOf(ids[at]) end
  return pack(found)
end

-- {after, before, limit, saga} answers ids and rows in the order of the ids, of one saga or of all.
function api.listTimeouts(keys, args)
  begin(keys, args)
  local a, parts = unpack1(args[1]), {}
  local ids = names(B .. (a[4] and ('ts:' .. a[4]) or 'ti'), a[1], '', a[2], a[3])
  for at = 1, #ids do parts[at] = pack(ids[at], timeoutOf(ids[at])) end
  return table.concat(parts)
end

-- {destination or false, from, before, offset, limit} answers timeouts in the lines, in the order of (dueAt, id).
function api.dueTimeouts(keys, args)
  begin(keys, args)
  local a, parts = unpack1(args[1]), {}
  local key = a[1] and (B .. 'td:' .. a[1]) or (B .. 'td')
  local ids = call('ZRANGEBYSCORE', key, a[2], '(' .. a[3], 'LIMIT', a[4], a[5])
  for at = 1, #ids do parts[at] = pack(ids[at], timeoutOf(ids[at])) end
  return table.concat(parts)
end

-- {offset, limit} answers leased timeouts.
function api.leasedTimeouts(keys, args)
  begin(keys, args)
  local a, parts = unpack1(args[1]), {}
  local ids = call('ZRANGE', B .. 'tl', a[1], a[1] + a[2] - 1)
  for at = 1, #ids do parts[at] = pack(ids[at], timeoutOf(ids[at])) end
  return table.concat(parts)
end

function api.nextTimeout(keys, args)
  begin(keys, args)
  local destinations = unpack1(args[1])
  if not destinations then return pack(earlier(firstScore(B .. 'td'), firstScore(B .. 'tl'))) end
  local at = false
  for each = 1, #destinations do
    at = earlier(at, earlier(firstScore(B .. 'td:' .. destinations[each]), firstScore(B .. 'tl:' .. destinations[each])))
  end
  return pack(at)
end

-- {now, first name, name after the last} answers all, leased, dead, and the due ones of everybody.
function api.countTimeouts(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local function between(key) return call('ZLEXCOUNT', B .. key, '[' .. a[2], '(' .. a[3]) end
  return pack(between('ti'), between('tv'), between('tx'), call('ZCOUNT', B .. 'td', '-inf', a[1]), call('ZCARD', B .. 'ti'))
end
`;
