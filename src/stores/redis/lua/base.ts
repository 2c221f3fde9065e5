/*
 * The functions that run inside the server, in Lua. One call of one function is atomic: that is what a home is. All keys of a
 * home begin with `B`, which carries its hash tag, so they lie in one slot. Values are MessagePack; `false` stands for null.
 *
 * Every call names two keys: `B` and one that never exists. While its slot moves to another node, the server then answers
 * TRYAGAIN before anything is written. With one key it would start a function that finds half of its keys gone.
 */

/** The fields of a job that functions read, in the order in which they are stored under `i`. See ../row-codec.ts. */
export const LUA_BASE = `
-- What clients may call. Lua allows a library 200 local names, and fields of a table are none.
local api = {}
-- While a library is loaded there is nothing to call yet; \`begin\` sets these.
local call, pack, unpack1
local QUEUE, TYPE, CREATED, FLOW, FAIR, UNIQUE, LIMIT, FENCE, REV, CLAIMED, WORKER, NEEDS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
local STATE, WAKE, WAKEAT, RANK = 13, 14, 15, 16
local WAITAT, TOTALAT, STARTED, STALLAT, HEARTBEAT, FINISHED, PRUNEAT, DEAD = 20, 21, 22, 25, 26, 27, 28, 29
local IMAGE_SIZE, IMAGE_LAST = 17, 29
local PENDING, AVAILABLE, ACTIVE, SCHEDULED, RETRYABLE, COMPLETED = 0, 1, 2, 3, 4, 5
local FENCE_SPAN, RANK_SPAN = 2097152, 35184372088832
local MOST_BYTES = 4000000
local MOST_HINTS = 200

-- What one call works on. B: how its keys begin. n: changes of counts. q: queues whose lines changed. sets: members of sorted
-- sets and their new scores, false for those that leave; they are written together at the end, which costs half.
local B, n, q, sets, hints, ready, events, heads, timeoutsAt, isAwaited
-- The keys of lines are many; the others are built once per call.
local KW0, KW1, KD, KRW, lines, ids
-- The lowest revision that this call may give; false until it is known.
local least
-- Which process this is, and since which change of its data. A library that is loaded again has to ask again.
local node = false

local function begin(keys, args)
  call, pack, unpack1 = redis.call, cmsgpack.pack, cmsgpack.unpack
  B, isAwaited = keys[1] .. ':', args[2]
  n, q, sets, hints, ready, events, heads, timeoutsAt = {}, {}, {}, {}, {}, {}, '', false
  KW0, KW1, KD, KRW = B .. 'w0', B .. 'w1', B .. 'd', B .. 'rw'
  least, lines, ids = false, {}, {}
end

-- A process that takes over a home may lack its last writes. Revisions that were given in them must not be given again, so
-- each new process gives only those from its own clock on. The first one of a home starts at 0.
local function leastRevision()
  if not node then
    node = string.match(call('INFO', 'server'), 'run_id:(%w+)') .. string.match(call('INFO', 'replication'), 'master_replid:(%w+)')
  end
  local by, from = string.match(call('GET', B .. 'ep') or '', '^(%w+) (%d+)$')
  if by == node then
    least = tonumber(from)
    return
  end
  least = 0
  if by then
    local time = call('TIME')
    least = math.max(tonumber(from) + 1000000, tonumber(time[1]) * 1000000 + tonumber(time[2]))
  end
  call('SET', B .. 'ep', node .. ' ' .. string.format('%.0f', least))
end

local function nextRevision(after)
  if not least then leastRevision() end
  return math.max(after + 1, least)
end

-- The least of two instants, either of which may be missing.
local function earlier(a, b)
  if not a then return b end
  if not b then return a end
  return a < b and a or b
end

-- Two names as one, so that no pair of others gives the same.
local function pair(a, b) return #a .. ':' .. a .. b end

-- The tenant of a name: what stands between the two marks; empty for a name of none.
local function tenantOf(name)
  if string.byte(name, 1) ~= 1 then return '' end
  return string.match(name, '^\\1([^\\1]*)\\1') or ''
end

-- Joining texts is slow, so the names of fields and keys are made once per call, not once per job.
local function count(r, by)
  local of, state = n[r[QUEUE]], r[STATE]
  if not of then of = {} n[r[QUEUE]] = of end
  local states = of[r[TYPE]]
  if not states then states = {} of[r[TYPE]] = states end
  states[state] = (states[state] or 0) + by
end

local function lineKey(queue)
  local key = lines[queue]
  if not key then key = B .. 'r:' .. queue lines[queue] = key end
  return key
end

local function idsKey(queue)
  local key = ids[queue]
  if not key then key = B .. 'i:' .. tenantOf(queue) ids[queue] = key end
  return key
end

local function place(key, member, score)
  local set = sets[key]
  if not set then set = {} sets[key] = set end
  set[member] = score
end

local function flushSets()
  for key, set in pairs(sets) do
    local added, removed, more, less, last, text = {}, {}, 0, 0, false, ''
    for member, score in pairs(set) do
      if score then
        -- Many members of a call have one score, and writing a number as a text is slow.
        if score ~= last then last, text = score, string.format('%.0f', score) end
        added[more + 1], added[more + 2] = text, member
        more = more + 2
        if more == 1000 then call('ZADD', key, unpack(added)) added, more = {}, 0 end
      else
        less = less + 1
        removed[less] = member
        if less == 1000 then call('ZREM', key, unpack(removed)) removed, less = {}, 0 end
      end
    end
    if more > 0 then call('ZADD', key, unpack(added)) end
    if less > 0 then call('ZREM', key, unpack(removed)) end
  end
  sets = {}
end

local function flushCounts()
  for queue, of in pairs(n) do
    local key = B .. 'n:' .. queue
    for name, states in pairs(of) do
      for state, by in pairs(states) do
        if by ~= 0 then
          local now = call('HINCRBY', key, state .. name, by)
          if now <= 0 then
            call('HDEL', key, state .. name)
            if call('EXISTS', key) == 0 then call('ZREM', B .. 'qs', queue) end
          elseif now == by then call('ZADD', B .. 'qs', 0, queue) end
        end
      end
    end
  end
  n = {}
end

local function hint(kind, id)
  if #hints < 2 * MOST_HINTS then hints[#hints + 1] = kind hints[#hints + 1] = id end
end

local function hintTimeout(dueAt, now)
  if dueAt <= now + 60000 then timeoutsAt = earlier(timeoutsAt, dueAt) end
end

local function record(now, head, of)
  events[#events + 1] = of and ('[' .. head .. ',' .. of .. ']') or ('[' .. head .. ']')
  events.at = now
end

-- Writes what the call collected: counts, which queues have available jobs, events, and one message with its hints.
local function finish()
  flushSets()
  flushCounts()
  for queue in pairs(q) do
    if call('EXISTS', B .. 'r:' .. queue) == 1 then call('ZADD', B .. 'qr', 0, queue)
    else call('ZREM', B .. 'qr', queue) end
  end
  if #events > 0 then
    local body = '{"heads":[' .. heads .. '],"items":[' .. table.concat(events, ',') .. ']}'
    call('XADD', B .. 'e', '*', 'a', events.at, 'b', body)
  end
  -- The caller waits until replicas have the last write of its connection. A repeated call must have one, too.
  if isAwaited then call('SET', B .. 'ack', 1) end
  for queue in pairs(ready) do hint('r', queue) end
  if timeoutsAt then hints[#hints + 1] = 't' hints[#hints + 1] = timeoutsAt end
  if #hints > 0 then call(PUBLISH, B .. 'hints', pack(hints)) end
end

-- The order of names is that of their bytes. Lua's own comparison depends on the locale of the server.
local function before(a, b)
  for at = 1, math.min(#a, #b) do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then return x < y end
  end
  return #a < #b
end

local function firstScore(key)
  local found = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return found[2] and tonumber(found[2]) or false
end

-- Reads a range of names in order: after a name if it is given, else from one on; before another if that is given.
local function names(key, after, from, to, limit)
  return call('ZRANGEBYLEX', key, after and ('(' .. after) or ('[' .. from), to and ('(' .. to) or '+', 'LIMIT', 0, limit)
end
`;
