/** Jobs and the indexes that follow from their rows alone. Only `enter`, `leave` and `rewrite` change an index. */
export const LUA_JOBS = `
local function jobKey(id) return B .. 'j:' .. id end

local function dueOf(r)
  if r[STATE] >= COMPLETED then return KD, r[PRUNEAT] end
  return r[WAKE] == 1 and KW1 or KW0, r[WAKEAT]
end

local function fairRank(r) return math.floor(r[RANK] / RANK_SPAN) end
local function fairKeys(priority, queue) return B .. 'fk:' .. priority .. ':' .. queue end
local function fairJobs(priority, queue, key) return B .. 'fj:' .. priority .. ':' .. pair(queue, key) end

local function enterReady(id, r)
  local queue = r[QUEUE]
  place(lineKey(queue), id, r[RANK])
  q[queue] = true
  if not r[FAIR] then return end
  local priority = fairRank(r)
  call('ZADD', fairJobs(priority, queue, r[FAIR]), r[RANK], id)
  call('ZADD', fairKeys(priority, queue), 0, r[FAIR])
  call('ZADD', B .. 'fp:' .. queue, priority, priority)
end

local function leaveFair(id, r)
  if not r[FAIR] then return end
  local priority, queue = fairRank(r), r[QUEUE]
  local jobs = fairJobs(priority, queue, r[FAIR])
  call('ZREM', jobs, id)
  if call('EXISTS', jobs) == 1 then return end
  call('ZREM', fairKeys(priority, queue), r[FAIR])
  if call('EXISTS', fairKeys(priority, queue)) == 0 then call('ZREM', B .. 'fp:' .. queue, priority) end
end

local function leaveReady(id, r)
  place(lineKey(r[QUEUE]), id, false)
  q[r[QUEUE]] = true
  leaveFair(id, r)
end

-- A limit key: the live jobs that have it by their states, those that wait only for it, and counts of the others.
local function addLimit(id, r, by)
  local key, state = r[LIMIT], r[STATE]
  if state >= COMPLETED then return end
  local counts = B .. 'gc:' .. key
  if state == PENDING and r[NEEDS] == 0 then
    if by == 1 then call('ZADD', B .. 'g:' .. key, r[RANK], id) else call('ZREM', B .. 'g:' .. key, id) end
  elseif state == AVAILABLE then call('HINCRBY', counts, 'a', by)
  elseif state == RETRYABLE then call('HINCRBY', counts, 'y', by)
  elseif state == ACTIVE then
    call('HINCRBY', counts, 'x', by)
    if not r[STARTED] then call('HINCRBY', counts, 'u', by) end
    if by == 1 then call('ZADD', B .. 'gq:' .. r[QUEUE], 0, id) else call('ZREM', B .. 'gq:' .. r[QUEUE], id) end
  end
  if by == 1 then
    if call('ZADD', B .. 'gj:' .. key, state, id) == 1 then call('ZADD', B .. 'gk', 0, key) end
  else
    call('ZREM', B .. 'gj:' .. key, id)
    if call('EXISTS', B .. 'gj:' .. key) == 0 then call('ZREM', B .. 'gk', key) call('DEL', counts) end
  end
end

-- Unique keys are kept with the id of their holder in one sorted set: it answers who holds a key, and lists them in order.
local function holder(key)
  local found = call('ZRANGEBYLEX', B .. 'u', '[' .. key .. '\\0', '(' .. key .. '\\1', 'LIMIT', 0, 1)[1]
  return found and string.sub(found, #key + 2) or false
end

local function freeKey(id, r) if r[UNIQUE] then call('ZREM', B .. 'u', r[UNIQUE] .. '\\0' .. id) end end

-- A live job holds its key, and a finished one does not. A revived job loses the key if another job holds it.
local function holdKey(id, r)
  local key = r[UNIQUE]
  if not key then return end
  if r[STATE] >= COMPLETED then return freeKey(id, r) end
  local by = holder(key)
  if not by then call('ZADD', B .. 'u', 0, key .. '\\0' .. id)
  elseif by ~= id then r[UNIQUE] = false end
end

local function deadKey(r) return B .. 'dl:' .. tenantOf(r[QUEUE]) end

local function enter(id, r)
  count(r, 1)
  if r[DEAD] == 1 then place(deadKey(r), id, r[FINISHED] or 0) end
  if r[STATE] == AVAILABLE then enterReady(id, r) end
  if r[LIMIT] then addLimit(id, r, 1) end
  local key, at = dueOf(r)
  if at then place(key, id, at) end
  holdKey(id, r)
end

local function leave(id, r)
  count(r, -1)
  if r[DEAD] == 1 then place(deadKey(r), id, false) end
  if r[STATE] == AVAILABLE then leaveReady(id, r) end
  if r[LIMIT] then addLimit(id, r, -1) end
  local key, at = dueOf(r)
  if at then place(key, id, false) end
end

-- Moves a job in the indexes from what it was to what it is. Most writes leave most of them as they are.
local function rewrite(id, o, r)
  if o[LIMIT] or r[LIMIT] or o[DEAD] == 1 or r[DEAD] == 1 then leave(id, o) return enter(id, r) end
  if o[STATE] ~= r[STATE] then
    count(o, -1)
    count(r, 1)
  end
  local was, is = o[STATE] == AVAILABLE, r[STATE] == AVAILABLE
  if was and (not is or o[RANK] ~= r[RANK]) then leaveReady(id, o) end
  if is and (not was or o[RANK] ~= r[RANK]) then enterReady(id, r) end
  local oldKey, oldAt = dueOf(o)
  local key, at = dueOf(r)
  if oldAt and (not at or key ~= oldKey) then place(oldKey, id, false) end
  if at and (at ~= oldAt or key ~= oldKey) then place(key, id, at) end
  if r[UNIQUE] and (o[STATE] >= COMPLETED) ~= (r[STATE] >= COMPLETED) then holdKey(id, r) end
end

local function copyOf(r)
  return {unpack(r, 1, IMAGE_LAST)}
end

-- The values of a row follow each other without a list around them: that is read and written twice as fast.
local function packRow(r) return pack(unpack(r, 1, IMAGE_LAST)) end

-- The row of a job; and, if it may be erased, whether it has a log.
local function rowOf(id, mayErase)
  if mayErase then
    local v = call('HMGET', jobKey(id), 'i', 'n')
    return v[1] and {unpack1(v[1])} or false, v[2]
  end
  local text = call('HGET', jobKey(id), 'i')
  return text and {unpack1(text)} or false
end

-- Replaces the row of a job, and writes further fields with it.
local function store(id, o, r, fields)
  rewrite(id, o, r)
  if fields then
    fields[1], fields[2], fields[3] = jobKey(id), 'i', packRow(r)
    return call('HSET', unpack(fields))
  end
  call('HSET', jobKey(id), 'i', packRow(r))
end

local function makeAvailable(id, o)
  local r = copyOf(o)
  r[STATE], r[WAKE], r[WAKEAT], r[REV] = AVAILABLE, 0, earlier(r[WAITAT], r[TOTALAT]), nextRevision(r[REV])
  store(id, o, r)
  ready[r[QUEUE]] = true
  return r
end

-- On a server with many keys, a lookup of one that is not there costs most: its memory is not in the cache of the CPU.
local function erase(id, r, isLogged)
  leave(id, r)
  freeKey(id, r)
  if isLogged then call('DEL', jobKey(id), B .. 'l:' .. id) else call('DEL', jobKey(id)) end
  place(idsKey(r[QUEUE]), id, false)
end

-- The texts of new rows: jobs that were enqueued together have the same.
local lastText, lastRow
local function newRow(text)
  if text ~= lastText then lastText, lastRow = text, {unpack1(text)} end
  return lastRow
end

-- What prevents a job from being inserted: it is known (1), or the id of the job that holds its unique key.
local function known(id, r)
  if call('EXISTS', jobKey(id)) == 1 then return 1 end
  return r[UNIQUE] and holder(r[UNIQUE]) or false
end

-- A new job is {id, row as text, payload, options, head of its event, fields of its event}.
local function insert(job, now)
  local id, r = job[1], newRow(job[2])
  local because = known(id, r)
  if because then return because end
  -- The home is marked before it has its first job: a replica with the job then has the mark, too.
  if not least then leastRevision() end
  if job[4] then call('HSET', jobKey(id), 'i', job[2], 'p', job[3], 'o', job[4])
  else call('HSET', jobKey(id), 'i', job[2], 'p', job[3]) end
  place(idsKey(r[QUEUE]), id, 0)
  enter(id, r)
  if r[STATE] == AVAILABLE then ready[r[QUEUE]] = true end
  if job[5] then record(now, job[5], job[6]) end
  return false
end

-- The jobs of a queue that wait in any way.
local function waitingIn(queue)
  flushCounts()
  local fields, sum = call('HGETALL', B .. 'n:' .. queue), 0
  for at = 1, #fields, 2 do
    local state = string.byte(fields[at], 1) - 48
    if state ~= ACTIVE and state < COMPLETED then sum = sum + tonumber(fields[at + 1]) end
  end
  return sum
end

-- {now, heads, jobs, {queue, bound, …}} answers per job: false, 1 (exists), 2 (full) or the holder of its key; then the depths.
function api.enqueue(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local now, jobs, bounds = a[1], a[3], a[4]
  heads = a[2]
  local answers, bound, waiting = {}, {}, {}
  for at = 1, #bounds, 2 do bound[bounds[at]] = bounds[at + 1] waiting[bounds[at]] = waitingIn(bounds[at]) end
  for at = 1, #jobs do
    local job = jobs[at]
    local r = #bounds > 0 and newRow(job[2])
    local most = r and bound[r[QUEUE]]
    if most and waiting[r[QUEUE]] >= most then answers[at] = known(job[1], r) or 2
    else
      answers[at] = insert(job, now)
      if most and not answers[at] then waiting[r[QUEUE]] = waiting[r[QUEUE]] + 1 end
    end
  end
  local depths = {}
  for at = 1, #bounds, 2 do depths[#depths + 1] = waitingIn(bounds[at]) end
  finish()
  return pack(answers, depths)
end

-- Adds a row and its documents to the parts of an answer. Returns its length.
local function answerRow(parts, id, v, text)
  local rest = pack(id, v[2], v[3], v[4], v[5], v[6], v[7], v[8])
  parts[#parts + 1] = text or v[1]
  parts[#parts + 1] = rest
  return #rest
end

local DOCUMENT_AT = {i = 1, p = 2, o = 3, y = 4, e = 5, g = 6, k = 7, r = 8}

-- The row and the documents of a job. Most jobs have few fields, so reading all is faster than asking for eight.
local function readRow(id)
  local v, all = {false, false, false, false, false, false, false, false}, call('HGETALL', jobKey(id))
  for at = 1, #all, 2 do
    local place = DOCUMENT_AT[all[at]]
    if place then v[place] = all[at + 1] end
  end
  return v
end

-- The same without the documents that may be large: they are not even read. See ../../../core/job/brief-row.ts.
local function readBrief(id)
  local key = jobKey(id)
  local v = call('HMGET', key, 'i', 'o', 'y', 'e')
  local progress = call('HEXISTS', key, 'g') == 1 and BRIEF_PROGRESS
  return {v[1], 'null', v[2], v[3], v[4], progress, false, false}
end

local function claimJob(id, v, a, mark, parts)
  local o = {unpack1(v[1])}
  count(o, -1)
  if o[LIMIT] then addLimit(id, o, -1) end
  if o[FAIR] then leaveFair(id, o) end
  if o[WAKE] == 1 and o[WAKEAT] then place(KW1, id, false) end
  local r, now, lease = o, a[3], a[4]
  local limited = o[LIMIT]
  local stall = now + math.min(math.max(r[HEARTBEAT] or lease, a[5]), lease)
  r[STATE], r[WAKE], r[STALLAT] = ACTIVE, 0, stall
  r[WAKEAT] = earlier(stall, earlier(r[WAITAT], r[TOTALAT]))
  r[FENCE] = (math.floor(r[FENCE] / FENCE_SPAN) + 1) * FENCE_SPAN + a[6]
  r[REV], r[CLAIMED], r[WORKER] = nextRevision(r[REV]), now, a[7]
  if mark and not limited then r[LIMIT] = mark end
  local text = packRow(r)
  call('HSET', jobKey(id), 'i', text)
  count(r, 1)
  if r[LIMIT] then addLimit(id, r, 1) end
  place(KW0, id, r[WAKEAT])
  return answerRow(parts, id, v, text)
end

-- How many jobs a claim may take: none of a paused queue, and no more than a queue with a limit has room for.
local function roomOf(a)
  if call('HEXISTS', B .. 'rec:pause', a[1]) == 1 then return 0 end
  if not a[9] then return a[2] end
  return math.min(a[2], a[9] - call('ZCARD', B .. 'gq:' .. a[1]))
end

-- Claims jobs by their ids, until they are too large for one answer. Returns how many.
local function claimAll(ids, a, parts)
  local bytes, done = 0, 0
  for at = 1, #ids do
    local v = readRow(ids[at])
    if v[1] then bytes = bytes + claimJob(ids[at], v, a, a[10], parts) end
    done = at
    if bytes > MOST_BYTES then break end
  end
  return done
end

local function removeReady(queue, ids, done)
  if done == 0 then return end
  call('ZREM', B .. 'r:' .. queue, unpack(ids, 1, done))
  q[queue] = true
end

-- {queue, limit, now, lease, shortest, salt, worker, from, most, mark} answers whether it stopped early, and rows.
function api.claim(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local room, queue, parts = roomOf(a), a[1], {''}
  if room <= 0 then return pack(false) end
  local ids
  if a[8] == 0 then ids = call('ZRANGE', B .. 'r:' .. queue, 0, room - 1)
  else ids = call('ZRANGEBYSCORE', B .. 'r:' .. queue, a[8], '+inf', 'LIMIT', 0, room) end
  if #ids == 0 then return pack(false) end
  local done = claimAll(ids, a, parts)
  removeReady(queue, ids, done)
  finish()
  parts[1] = pack(done < #ids)
  return table.concat(parts)
end
`;
