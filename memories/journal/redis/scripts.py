"""The Lua scripts of a journal in Redis: each is one operation, which Redis does as a whole.

All of them get the same keys (see :class:`agent_brain.memories.journal.redis.entries.Keys`):

* ``HEAD``, a string: what is known of the session, after its SHA-1.
* ``ENTRIES`` and ``HISTORY``, sorted sets: the entries, and those that were retired, by number.
* ``LEASE``, a string: the token and the owner of the lease. It is kept for a day longer than the
  lease lasts, as an ended one is still good for its owner if nobody else took it.
* ``DELETED``, a string: the highest number of any session that was deleted or may have expired.
* ``SESSIONS``, a sorted set: the keys of all sessions, by the time when they expire, or ``inf``.

A server without memory left refuses a script at its first command, if that needs memory, and none
of what follows a command that needs none. So scripts that remove something begin with removing it.

``ARGV[1]`` is the session's key. The answer is a list that begins with ``ok``, or with what
prevented the operation, the session's key, and details; then nothing was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha1


@dataclass(frozen=True, slots=True)
class Script:
    """A script; ``repeatable`` says whether doing it twice is the same as doing it once."""

    text: str
    repeatable: bool = False
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        digest = sha1(self.text.encode(), usedforsecurity=False)  # as Redis names it
        object.__setattr__(self, "sha", digest.hexdigest())


_COMMON = """
local HEAD, ENTRIES, HISTORY, LEASE, DELETED, SESSIONS = unpack(KEYS, 1, 6)
local GRACE = 24 * 60 * 60 * 1000
local CLEANED = 100  -- at once
local session = ARGV[1]

-- End the script with an answer.
local function stop(outcome, about) error({outcome, session, about}) end

-- Call a function; return its result, or nil and what is damaged.
local function attempt(work, ...)
  local done, answer = pcall(work, ...)
  if done then return answer end
  if answer[1] ~= 'damaged' then error(answer, 0) end
  return nil, answer[3]
end

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The session, or nil if there is none.
local function read_head()
  local text = redis.pcall('GET', HEAD)
  if type(text) == 'table' then stop('damaged', 'its head is a key of another type') end
  if not text then
    local ends = redis.call('ZSCORE', SESSIONS, session)
    local listed = ends and (ends == 'inf' or tonumber(ends) > now())
    if listed or redis.call('EXISTS', ENTRIES, HISTORY) > 0 then
      stop('damaged', 'its head is missing')
    end
    return nil
  end
  local body = text:sub(42)
  local born, last, live, retired, created, updated, ends =
    body:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ')
  if redis.sha1hex(body) .. ' ' ~= text:sub(1, 41) or body:sub(-#session - 1) ~= ' ' .. session then
    stop('damaged', 'the checksum of its head is wrong')
  end
  return {
    born = born, last = tonumber(last), live = tonumber(live), retired = tonumber(retired),
    created = tonumber(created), updated = tonumber(updated), ends = tonumber(ends),
  }
end

-- Write the head; let all keys of the session expire at the same time, or never.
local function save_head(head)
  local body = string.format('%s %.0f %.0f %.0f %.0f %.0f %.0f ', head.born, head.last, head.live,
    head.retired, head.created, head.updated, head.ends) .. session
  redis.call('SET', HEAD, redis.sha1hex(body) .. ' ' .. body)
  for _, key in ipairs({HEAD, ENTRIES, HISTORY}) do
    if head.ends > 0 then
      redis.call('PEXPIREAT', key, head.ends)
    else
      redis.call('PERSIST', key)
    end
  end
  redis.call('ZADD', SESSIONS, head.ends > 0 and head.ends or 'inf', session)
end

-- How many entries a key has; nil if it is of another type.
local function size_of(key)
  local size = redis.pcall('ZCARD', key)
  return type(size) == 'number' and size or nil
end

-- Check that the session has all its entries.
local function check_entries(head)
  local live, retired = size_of(ENTRIES), size_of(HISTORY)
  if not live or not retired then stop('damaged', 'one of its keys is of another type') end
  head = head or {live = 0, retired = 0}
  if live ~= head.live or retired ~= head.retired then
    stop('damaged', 'entries are missing or were added')
  end
end

local function new_head(last, created, updated)
  local time = redis.call('TIME')
  return {
    born = time[1] .. string.format('%06d', time[2]), last = last, live = 0, retired = 0,
    created = created, updated = updated, ends = 0,
  }
end

local function highest_deleted() return tonumber(redis.call('GET', DELETED) or '0') end

local function note_deleted(last)
  if last > highest_deleted() then redis.call('SET', DELETED, string.format('%.0f', last)) end
end

-- Remove keys of expired sessions from the list; return how many.
local function clean()
  local keys = redis.call('ZRANGEBYSCORE', SESSIONS, '-inf', now(), 'LIMIT', 0, CLEANED)
  for _, key in ipairs(keys) do redis.call('ZREM', SESSIONS, key) end
  return #keys
end

-- Let the session expire in `ttl` milliseconds, '' for never. What has expired counts as deleted.
local function expire(head, ttl)
  head.ends = 0
  if ttl ~= '' then
    head.ends = now() + tonumber(ttl)
    note_deleted(head.last)
    clean()
  end
end

-- The token and the owner of the lease, and the milliseconds that it still lasts.
local function read_lease()
  local token, owner = (redis.call('GET', LEASE) or ''):match('^(%S+) (.*)$')
  return token, owner, redis.call('PTTL', LEASE) - GRACE
end

-- Remove the session, even if it is damaged; return how many entries it had.
local function delete_session()
  local head, problem = attempt(read_head)
  if not head and not problem then return 0 end
  local count, last = 0, head and head.last or 0
  for _, key in ipairs({ENTRIES, HISTORY}) do
    local size = size_of(key) or 0
    if size > 0 then
      count = count + size
      last = math.max(last, tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]))
    end
  end
  redis.call('UNLINK', HEAD, ENTRIES, HISTORY, LEASE)
  redis.call('ZREM', SESSIONS, session)
  note_deleted(last)
  return count
end

-- The entries of a text, each of which follows its length.
local function split(text)
  local at, entries, size = 1, {}, 0
  while at <= #text do
    size, at = struct.unpack('>I4', text, at)
    entries[#entries + 1], at = text:sub(at, at + size - 1), at + size
  end
  return entries
end

-- Add entries to a sorted set; return the last number.
local function add(key, entries)
  for _, entry in ipairs(entries) do redis.call('ZADD', key, entry:match('^%d+'), entry) end
  return tonumber(entries[#entries]:match('^%d+'))
end

local function run()
"""
_END = """
end
local done, answer = pcall(run)
if done or type(answer) == 'table' then return answer end
return redis.error_reply(answer)
"""


def _script(body: str) -> Script:
    return Script(_COMMON + body + _END)


def _repeatable(body: str) -> Script:
    return Script(_COMMON + body + _END, repeatable=True)


# Append entries, if the writer may and knows the session's last number. The entries' checksums
# contain their numbers: if they do not begin after `base`, the answer is where they must begin.
APPEND = _script("""
local expect, base, token, lasts, time, ttl, text = unpack(ARGV, 2)
local head = read_head()
check_entries(head)
local stored, owner, left = read_lease()
if token ~= '' then
  if stored ~= token then stop('lost') end
  redis.call('PEXPIRE', LEASE, lasts + GRACE)
elseif stored and left > 0 then
  stop('held', {stored, owner, left})
end
local found = head and head.last or 0
local entries = split(text)
if expect ~= '' and tonumber(expect) ~= found then stop('conflict', found) end
if #entries == 0 then return {'ok', found} end
local start = head and head.last or highest_deleted()
if tonumber(base) ~= start then return {'again', start} end
head = head or new_head(start, time, time)
head.live, head.last = head.live + #entries, add(ENTRIES, entries)
head.updated = math.max(head.updated, time)
expire(head, ttl)
save_head(head)
return {'ok', head.last}
""")

# Return a page of entries: at most `most`, and no more after `size` bytes. The answer: what is
# wrong with the session or '', when it was born, whether the page is the last, a digit for each
# entry that is 1 if it is retired, and the entries.
PAGE = _repeatable("""
local at, most, size, history = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] ~= ''
local head, problem = attempt(read_head)
local _, other = attempt(check_entries, head)
local keys = {}
for which, key in ipairs(history and {ENTRIES, HISTORY} or {ENTRIES}) do
  if size_of(key) then keys[#keys + 1] = {key, which - 1} end
end
local reply, retired = {'ok', problem or other or '', head and head.born or ''}, {}
local count, bytes, ended = 0, 0, false
while not ended and count < most and bytes < size do
  local batch, step = {}, math.min(64, most - count)
  for _, key in ipairs(keys) do
    local got = redis.call('ZRANGEBYSCORE', key[1], '(' .. at, '+inf', 'WITHSCORES',
      'LIMIT', 0, step)
    for i = 1, #got, 2 do batch[#batch + 1] = {got[i + 1], got[i], key[2]} end
  end
  if #keys > 1 then table.sort(batch, function(a, b) return tonumber(a[1]) < tonumber(b[1]) end) end
  ended = #batch < step
  for i = 1, math.min(#batch, step) do
    count, at, bytes = count + 1, batch[i][1], bytes + #batch[i][2]
    reply[5 + count], retired[count] = batch[i][2], batch[i][3]
  end
end
reply[4], reply[5] = ended and 1 or 0, table.concat(retired)
return reply
""")

# Return the session's last number.
LAST = _repeatable("""
local head = read_head()
return {'ok', head and head.last or 0}
""")

# Change entries, and return how many: 'delete' those with the given numbers, retired or not,
# 'retire' those, or 'trim' the history below a number. Numbers are not used again, so that doing it
# twice changes nothing else.
CHANGE = _repeatable("""
local change, numbers = ARGV[2], ARGV[3]
local head = read_head()
local live, retired = 0, 0
if change == 'trim' then
  retired = -redis.call('ZREMRANGEBYSCORE', HISTORY, '-inf', numbers)
else
  for number in numbers:gmatch('%d+') do
    if change == 'delete' then
      live = live - redis.call('ZREMRANGEBYSCORE', ENTRIES, number, number)
      retired = retired - redis.call('ZREMRANGEBYSCORE', HISTORY, number, number)
    else
      for _, entry in ipairs(redis.call('ZRANGEBYSCORE', ENTRIES, number, number)) do
        redis.call('ZREM', ENTRIES, entry)
        redis.call('ZADD', HISTORY, number, entry)
        live, retired = live - 1, retired + 1
      end
    end
  end
end
if live ~= 0 or retired ~= 0 then
  head.live, head.retired = head.live + live, head.retired + retired
  save_head(head)
end
return {'ok', change == 'retire' and retired or -live - retired}
""")

# Remove the whole session with its history and its lease, even if it is damaged, and note its last
# number; return how many entries it had.
DELETE_SESSION = _script("""
return {'ok', delete_session()}
""")

# Put entries into a sorted set of their own, KEYS[7], until EXCHANGE moves it into a session.
STAGE = _script("""
add(KEYS[7], split(ARGV[2]))
redis.call('PEXPIRE', KEYS[7], 60 * 60 * 1000)
return {'ok'}
""")

# Remove sessions and make others of what was staged. KEYS[7] and on are the four keys of each
# session that goes, then those of each that comes, with the two that its entries were staged in.
# ARGV has the time to live, how many go, their keys, and of each that comes its key, last number,
# numbers of entries and retired ones, and times.
EXCHANGE = _script("""
local ttl, going = ARGV[2], tonumber(ARGV[3])
local function use(at, key)
  HEAD, ENTRIES, HISTORY, LEASE, session = KEYS[at], KEYS[at + 1], KEYS[at + 2], KEYS[at + 3], key
end
local function each_coming(work)
  local at = 7 + 4 * going
  for i = 4 + going, #ARGV, 6 do
    use(at, ARGV[i])
    work(KEYS[at + 4], KEYS[at + 5], unpack(ARGV, i + 1, i + 5))
    at = at + 6
  end
end
local goes = {}
for i = 1, going do goes[ARGV[3 + i]] = true end
each_coming(function(entries, history, last, live, retired)
  local head = not goes[session] and read_head()
  if head then stop('conflict', head.last) end
  if size_of(entries) ~= tonumber(live) or size_of(history) ~= tonumber(retired) then
    stop('unstaged')
  end
end)
for i = 1, going do
  use(3 + 4 * i, ARGV[3 + i])
  delete_session()
end
-- Each gets another last number than any session that was deleted, so that a writer who knows that
-- one sees that this is not the same.
each_coming(function(entries, history, last, live, retired, created, updated)
  for from, to in pairs({[entries] = ENTRIES, [history] = HISTORY}) do
    if redis.call('EXISTS', from) > 0 then redis.call('RENAME', from, to) end
  end
  local head = new_head(math.max(tonumber(last), highest_deleted() + 1), created, updated)
  head.live, head.retired = live, retired
  expire(head, ttl)
  save_head(head)
end)
return {'ok'}
""")

# Remove keys of expired sessions from the list; return how many.
PURGE = _repeatable("return {'ok', clean()}")

# Return some keys of sessions that match a pattern, after the cursor that the next call continues
# at, which is 0 at the end.
LIST = _repeatable("""
local cursor, found = unpack(redis.call('ZSCAN', SESSIONS, ARGV[2], 'MATCH', ARGV[3],
  'COUNT', 1000))
local time, reply = now(), {'ok', cursor}
for i = 1, #found, 2 do
  if found[i + 1] == 'inf' or tonumber(found[i + 1]) > time then reply[#reply + 1] = found[i] end
end
return reply
""")

# Store a lease, unless somebody has one that has not ended and is not `over`; then return that.
TAKE = _repeatable("""
local token, owner, lasts, over = unpack(ARGV, 2)
local stored, holder, left = read_lease()
if stored and left > 0 and stored ~= token and stored ~= over then
  stop('held', {stored, holder, left})
end
redis.call('SET', LEASE, token .. ' ' .. owner, 'PX', lasts + GRACE)
return {'ok'}
""")

# Let a lease last longer, or remove it if that is 0; the answer says whether it was still there.
RENEW = _repeatable("""
local token, lasts = unpack(ARGV, 2)
if read_lease() ~= token then stop('lost') end
if lasts == '0' then redis.call('DEL', LEASE) else redis.call('PEXPIRE', LEASE, lasts + GRACE) end
return {'ok'}
""")
