/** Claims in turns, beats, sweeps, and what reads or removes jobs. */
export const LUA_WORK = `
-- {queue, rank to start from, after, is again, limit} answers false, or the priority, its keys in turn, and whether the best
-- job has none. The questions are those of ../../claim-questions.ts.
function api.fairKeysOf(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local queue, after, again, limit = a[1], a[3], a[4], a[5]
  local head = call('ZRANGEBYSCORE', B .. 'r:' .. queue, a[2], '+inf', 'LIMIT', 0, 1)[1]
  if not head then return pack(false) end
  local r = rowOf(head)
  local priority = fairRank(r)
  local of = fairKeys(priority, queue)
  local found = call('ZRANGEBYLEX', of, (again and '[' or '(') .. after, '+', 'LIMIT', 0, limit)
  if #found < limit then
    local rest = call('ZRANGEBYLEX', of, '-', (again and '(' or '[') .. after, 'LIMIT', 0, limit - #found)
    for at = 1, #rest do found[#found + 1] = rest[at] end
  end
  return pack(priority, found, not r[FAIR])
end

-- The best jobs of a queue that have no key at all. Only the first of the line are read.
local function keyless(queue, priority, most, ids)
  local best = call('ZRANGEBYSCORE', B .. 'r:' .. queue, priority * RANK_SPAN, '(' .. string.format('%.0f', (priority + 1) * RANK_SPAN), 'LIMIT', 0, 4 * most)
  for at = 1, #best do
    if most == 0 then return end
    local r = rowOf(best[at])
    if r and not r[FAIR] then ids[#ids + 1] = best[at] most = most - 1 end
  end
end

-- How many jobs the claim may take.
function api.room(keys, args)
  begin(keys, args)
  return pack(roomOf(unpack1(args[1])))
end

-- As a claim; a[11] names keys and counts, a[12] the priority, a[13] whether jobs without a key have the turn of the empty one.
function api.take(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local room, queue, parts, ids = roomOf(a), a[1], {''}, {}
  for at = 1, #a[11], 2 do
    local key, most = a[11][at], math.min(a[11][at + 1], room - #ids)
    if most > 0 then
      if key == '' and a[13] then keyless(queue, a[12], most, ids)
      else
        local best = call('ZRANGE', fairJobs(a[12], queue, key), 0, most - 1)
        for each = 1, #best do ids[#ids + 1] = best[each] end
      end
    end
  end
  local done = claimAll(ids, a, parts)
  removeReady(queue, ids, done)
  finish()
  parts[1] = pack(done < #ids or room < a[2])
  return table.concat(parts)
end

-- {now, worker, body, wakeAt, heads, {id, fence, rev, stallAt, head, of}…} answers per job: 0 ok, 1 changed, or {its state}.
function api.beat(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local answers = {}
  heads = a[5]
  if a[2] then putRecord('worker', a[2], a[3], a[4]) end
  for at = 1, #a[6] do
    local job = a[6][at]
    local r = rowOf(job[1])
    if not r then answers[at] = {-1}
    elseif r[FENCE] ~= job[2] or r[STATE] ~= ACTIVE then answers[at] = {r[STATE]}
    else
      answers[at] = r[REV] == job[3] and 0 or 1
      if job[4] then
        r[STALLAT] = job[4]
        call('HSET', jobKey(job[1]), 'i', packRow(r))
        if job[5] then record(a[1], job[5], job[6]) end
      end
    end
  end
  finish()
  return pack(answers)
end

local function promote(now, limit, promoted)
  local due = call('ZRANGEBYSCORE', KW1, '-inf', now, 'LIMIT', 0, limit)
  for at = 1, #due do
    local r = makeAvailable(due[at], rowOf(due[at]))
    promoted[r[QUEUE]] = (promoted[r[QUEUE]] or 0) + 1
  end
  return #due
end

-- {now, holdUntil, most to promote, most jobs, most records} answers when something is due next, how much of each kind there
-- was, the queues, the records, and the jobs.
function api.sweep(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local now, holdUntil, promoted, parts, bytes = a[1], a[2], {}, {''}, 0
  local made = a[3] > 0 and promote(now, a[3], promoted) or 0
  -- A promoted job may have a deadline that is over, too: then it is in the next set by now.
  if made > 0 then flushSets() end
  local held = a[4] > 0 and call('ZRANGEBYSCORE', KW0, '-inf', now, 'LIMIT', 0, a[4]) or {}
  local given = 0
  for at = 1, #held do
    local v = readRow(held[at])
    local r = {unpack1(v[1])}
    r[WAKEAT] = holdUntil
    local text = packRow(r)
    call('HSET', jobKey(held[at]), 'i', text)
    place(KW0, held[at], holdUntil)
    bytes = bytes + answerRow(parts, held[at], v, text)
    given = at
    if bytes > MOST_BYTES then break end
  end
  local records = holdRecords(now, holdUntil, a[5])
  local queues = {}
  for queue, many in pairs(promoted) do queues[#queues + 1] = queue queues[#queues + 1] = many end
  finish()
  local next = earlier(earlier(firstScore(KW0), firstScore(KW1)), firstScore(KRW))
  parts[1] = pack(next, {made, given, given < #held and 1 or 0}, queues, records)
  return table.concat(parts)
end

-- {queues, destinations, kinds and keys of records} answers when something is due, the queues that have a job and are not
-- paused, when the first timeout is due, and versions.
function api.look(keys, args)
  begin(keys, args)
  local a, found, versions, dueAt = unpack1(args[1]), {}, {}, false
  for at = 1, #a[1] do
    local queue = a[1][at]
    if call('EXISTS', B .. 'r:' .. queue) == 1 and call('HEXISTS', recordKey('pause'), queue) == 0 then found[#found + 1] = queue end
  end
  for at = 1, #a[2] do
    dueAt = earlier(dueAt, earlier(firstScore(B .. 'td:' .. a[2][at]), firstScore(B .. 'tl:' .. a[2][at])))
  end
  for at = 1, #a[3], 2 do
    local r = getRecord(a[3][at], a[3][at + 1])
    versions[#versions + 1] = r and r[1] or 0
  end
  return pack(earlier(earlier(firstScore(KW0), firstScore(KW1)), firstScore(KRW)), found, dueAt, versions)
end

-- {ids, is brief, most bytes} answers how many of the ids were read, and their rows; false for an unknown one.
function api.load(keys, args)
  begin(keys, args)
  local a, parts, bytes, done = unpack1(args[1]), {''}, 0, 0
  local ids, read, most = a[1], a[2] and readBrief or readRow, math.min(a[3] or MOST_BYTES, MOST_BYTES)
  for at = 1, #ids do
    local v = read(ids[at])
    if v[1] then bytes = bytes + answerRow(parts, ids[at], v) else parts[#parts + 1] = pack(false) end
    done = at
    if bytes > most then break end
  end
  parts[1] = pack(done)
  return table.concat(parts)
end

-- The time of this node.
function api.clock(keys, args)
  begin(keys, args)
  local time = call('TIME')
  return pack(tonumber(time[1]), tonumber(time[2]))
end

-- {now, events before, limit of each kind} answers how many jobs and how many rows of events were removed.
function api.prune(keys, args)
  begin(keys, args)
  local a = unpack1(args[1])
  local due = call('ZRANGEBYSCORE', KD, '-inf', a[1], 'LIMIT', 0, a[3])
  for at = 1, #due do erase(due[at], rowOf(due[at], true)) end
  local old, rows = 0, call('XRANGE', B .. 'e', '-', '+', 'COUNT', a[4])
  for at = 1, #rows do
    if tonumber(rows[at][2][2]) < a[2] then call('XDEL', B .. 'e', rows[at][1]) old = old + 1 end
  end
  finish()
  return pack(#due, old)
end
`;
