/** Units: guards, one job, effects. */
export const LUA_COMMIT = `
local function appendLog(id, line)
  if call('EXISTS', jobKey(id)) == 0 then return end
  call('HINCRBY', jobKey(id), 'n', 1)
  call('RPUSH', B .. 'l:' .. id, line)
  call('LTRIM', B .. 'l:' .. id, -1000, -1)
end

local function countDown(id, now)
  local o = rowOf(id)
  if not o or (o[STATE] ~= PENDING and o[STATE] ~= SCHEDULED) or o[NEEDS] == 0 then return end
  local r = copyOf(o)
  r[NEEDS] = o[NEEDS] - 1
  if r[NEEDS] <= (o[LIMIT] and 1 or 0) then r[WAKE], r[WAKEAT], r[REV] = 0, now, nextRevision(o[REV]) end
  store(id, o, r)
end

-- A guard is {'r', kind, key, version}, {'t', timeout, owner} or {'i', timeout, dueAt, is dead}.
local function guardFails(g, now)
  if g[1] == 'r' then
    local r = getRecord(g[2], g[3])
    return (r and r[1] or 0) ~= g[4] and 3 or false
  end
  local t = timeoutOf(g[2])
  if g[1] == 't' then return leaseLoss(t, g[3], now) and 4 or false end
  return not (t and not t[T_OWNER] and t[T_DUE] == g[3] and (t[T_DEAD] and true or false) == g[4]) and 4 or false
end

-- Why a unit cannot be written: 1 lost, 2 stale, 3 conflict, 4 lapsed, 5 gone.
local function refusal(job, r, guards, now)
  if job then
    if not r then return 5 end
    if r[FENCE] ~= job[2] then return 1 end
    if not job[3] and r[STATE] >= COMPLETED then return 1 end
    if job[3] and r[REV] ~= job[3] then return 2 end
  end
  for at = 1, #guards do
    local because = guardFails(guards[at], now)
    if because then return because end
  end
  return false
end

-- {id, fence, rev, image, documents, next fence, notify the holder, drop}
local function writeJob(job, o, isLogged)
  local id, image, documents = job[1], job[4], job[5]
  local r = o
  if image then
    r = {o[1], o[2], o[3], o[4], o[5], o[6], o[7], o[8], nextRevision(o[REV]), o[10], o[11], o[12], unpack(image, 1, IMAGE_SIZE)}
  end
  if job[6] and r == o and job[6] ~= o[FENCE] then r = copyOf(o) end
  if job[6] then r[FENCE] = job[6] end
  if job[8] then erase(id, o, isLogged)
  else
    local fields = {false, false, false}
    for at = 1, #documents, 2 do
      if documents[at + 1] then
        fields[#fields + 1] = documents[at]
        fields[#fields + 1] = documents[at + 1]
      else call('HDEL', jobKey(id), documents[at]) end
    end
    if r ~= o or #fields > 3 then store(id, o, r, fields) end
  end
  local voided = job[6] and job[6] ~= o[FENCE]
  if o[STATE] == ACTIVE and (voided or job[7]) then hint('l', id) end
  if r[STATE] >= COMPLETED and o[STATE] < COMPLETED then hint('s', id) end
  if r[STATE] == AVAILABLE and o[STATE] ~= AVAILABLE then ready[r[QUEUE]] = true end
end

local EFFECTS = {
  e = function(e, now) insert(e[2], now) end,
  c = function(e, now) countDown(e[2], now) end,
  p = function(e) putRecord(e[2], e[3], e[4], e[5]) end,
  d = function(e) deleteRecord(e[2], e[3]) end,
  a = admit,
  s = spend,
  q = function(e) ready[e[2]] = true end,
  t = function(e, now) if insertTimeout(e[2]) then hintTimeout(e[2][1 + T_DUE], now) end end,
  x = function(e) local t = timeoutOf(e[2]) if t then deleteTimeout(e[2], t) end end,
  v = function(e, now) record(now, e[2], e[3]) end,
  l = function(e) appendLog(e[2], e[3]) end,
}

-- Answers false, {removed, removed under a lease, …} of its revokes, or {-because, state, fence, rev}.
local function commitUnit(unit, now)
  local job, effects = unit[1], unit[3]
  local o, isLogged = false, false
  if job then o, isLogged = rowOf(job[1], job[8]) end
  local because = refusal(job, o, unit[2], now)
  if because then
    if o then return {-because, o[STATE], o[FENCE], o[REV]} end
    return {-because}
  end
  if job then writeJob(job, o, isLogged) end
  local revoked = false
  for at = 1, #effects do
    local e = effects[at]
    if e[1] == 'k' then
      revoked = revoked or {}
      local pending, leased = revoke(e[2], now)
      revoked[#revoked + 1] = pending
      revoked[#revoked + 1] = leased
    else EFFECTS[e[1]](e, now) end
  end
  return revoked
end

-- {now, heads, units}
function api.commit(keys, args)
  begin(keys, args)
  local a, answers = unpack1(args[1]), {}
  heads = a[2]
  for at = 1, #a[3] do answers[at] = commitUnit(a[3][at], a[1]) end
  finish()
  return pack(answers)
end
`;
