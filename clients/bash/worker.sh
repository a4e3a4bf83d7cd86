#!/usr/bin/env bash
# A worker of refreshd in Bash, with redis-cli 7 and jq: one attempt at a time.
#
#   worker.sh PROGRAM [ARGUMENT...]
#
# PROGRAM gets the attempt as one line of JSON on stdin. Exit code 0 is success; otherwise its last line on stderr is the reason. It is ended by
# SIGTERM, and two seconds later by SIGKILL, when the attempt no longer counts or its deadline has passed. What it prints on stdout goes to the
# owner of the model, the latest line once a second. A line {"metrics":{"rows":51}} is not: its numbers, by which a policy may doubt the success, go
# with it; the last such line counts.
#
# With REFRESHD_LOG=1 the last 64 KiB of what PROGRAM prints are kept with the attempt. Mind secrets: not all of them are masked.
#
# REFRESHD_SIGNS_EVERY=30 announces signs of life: each line that PROGRAM prints is one, sent at most every 30 seconds. If it prints nothing for the
# silent_after of its policy, the attempt counts as lost.
#
# REDIS_URL is redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], or rediss://, percent-encoded. A cluster is
# redis-cluster://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]...], or rediss-cluster://, and its queue is in braces. PROGRAM does not get the URL, and no
# list of processes shows the password.
#
# The attempt is in a list of the worker in Redis, and a child process gives a heartbeat a second. If it dies, others get the attempt within seconds; but
# a program whose worker was ended by SIGKILL works on beside them, to its end, which nobody hears. With REFRESHD_PLAIN=1 the worker pops entries and gives
# no heartbeats: the attempt of a dead one waits for its deadline.
#
# It asks Redis once a second, and knows neither queues of several parts nor names of their own: for those take one of the other clients, or
# `refreshd worker --exec PROGRAM`, which needs neither jq nor this script.
set -uo pipefail
set -m # each program leads a process group of its own

queue=${REFRESHD_QUEUE:-bigtables}
url=${REDIS_URL:-redis://127.0.0.1:6379}
password=${REDISCLI_AUTH:-}
plain=${REFRESHD_PLAIN:+yes}
signs=${REFRESHD_SIGNS_EVERY:-}
if ! [[ $signs =~ ^([1-9][0-9]*)?$ ]]; then
  echo 'REFRESHD_SIGNS_EVERY: expected whole seconds, such as 30' >&2
  exit 2
fi
unset REDIS_URL REDISCLI_AUTH
node='(\[[^]]*\]|[^]:/?@,[]*)(:([0-9]+))?'
if ! [[ $url =~ ^redis(s?)(-cluster)?://((([^:]*):)?(.*)@)?($node(,$node)*)(/([0-9]*))?(\?.*)?$ ]]; then
  echo 'REDIS_URL: expected redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], or rediss://, redis-cluster:// or rediss-cluster://' >&2
  exit 2
fi
cluster=${BASH_REMATCH[2]}
IFS=, read -ra nodes <<<"${BASH_REMATCH[7]}"
if [ -z "$cluster" ] && ((${#nodes[@]} > 1)); then
  echo 'REDIS_URL: expected one host, or redis-cluster://' >&2
  exit 2
fi
server=(${BASH_REMATCH[2]:+-c} -n "${BASH_REMATCH[16]:-0}" ${BASH_REMATCH[1]:+--tls})
user=${BASH_REMATCH[5]//\\/\\\\} encoded=${BASH_REMATCH[6]//\\/\\\\}
if [ -n "$encoded" ]; then printf -v password %b "${encoded//%/\\x}"; fi
if [ -n "$user" ]; then printf -v user %b "${user//%/\\x}" && server+=(--user "$user"); fi
hosts=() ports=()
for at in "${nodes[@]:-}"; do
  [[ $at =~ ^$node$ ]]
  host=${BASH_REMATCH[1]//[][]/}
  hosts+=("${host:-127.0.0.1}") ports+=("${BASH_REMATCH[3]:-6379}")
done

# calm runs a program that a signal to the worker does not end, too: it may hold an attempt.
calm() (
  trap '' TERM INT
  exec "$@"
)

# redis asks Redis, for at most 3 s: a connection may carry nothing any more. False: it has answered an error, which is printed on stderr, or nothing.
redis() (
  trap '' TERM INT
  if [ -n "$password" ]; then export REDISCLI_AUTH=$password; fi
  for at in "${!hosts[@]}"; do # of a cluster the first that answers, which leads to the others
    server+=(-h "${hosts[at]}" -p "${ports[at]}")
    if ((${#hosts[@]} == 1)) || [ "$(timeout --foreground -s KILL 0.5 redis-cli "${server[@]}" PING 2>/dev/null)" = PONG ]; then break; fi
  done
  { said=$(timeout --foreground -s KILL 3 sh -c 'trap "" TERM INT; exec "$@"' - redis-cli -e "${server[@]}" "$@" 2>&1 >&3); } 3>&1
  code=$?
  if [ -n "$said" ]; then printf '%s\n' "$said" >&2; fi
  if [[ $said == *' failed: '* ]]; then exit 1; fi # SELECT was refused: redis-cli goes on in another database
  exit "$code"
)

# lua SCRIPT INPUT ARGUMENT... runs a script of refreshd: by its digest, which the daemons have loaded, or else by its text. INPUT is put where an argument
# is @, so that no list of processes shows it. It sets reply; if it is false, to the error.
lua() {
  local digest=$1_digest text=$1_script input=$2 failed
  shift 2
  ask() (
    trap '' TERM INT
    if [ -n "$input" ]; then printf %s "$input" | redis -X @ "$@" 2>&1; else redis "$@" 2>&1; fi
    failed=$?
    printf . # else the shell cuts off empty lines
    exit "$failed"
  )
  reply=$(ask EVALSHA "${!digest}" "$@")
  failed=$?
  if [[ $failed != 0 && $reply == NOSCRIPT* ]]; then
    local unloaded=$reply
    reply=$(ask EVAL "${!text}" "$@")
    failed=$?
    if [[ $failed != 0 && $reply == NOPERM* ]]; then reply=$unloaded; fi # the user may only run scripts that the daemons load, and they will
  fi
  reply=${reply%.}
  return "$failed"
}

# rename gives the worker a name that Redis does not know. Entries in the list of the old name are requeued.
pool= held='' # held: the entry in hand, which is in the list
rename() {
  local letters='' alphabet=abcdefghijklmnopqrstuvwxyz234567
  while ((${#letters} < 8)); do letters+=${alphabet:${SRANDOM:-$RANDOM}%32:1}; done
  if [ -n "$pool" ]; then
    owner=$pool~$letters
  else
    TZ=UTC printf -v pool '%.60s:%d-%(%Y%m%dT%H%M%SZ)T-%s' "$(hostname | tr -c 'A-Za-z0-9._\n-' -)" $$ -1 "$letters"
    owner=$pool
  fi
  new=1 held=''
}
rename

# take MOST moves an entry to the worker's list; with 0 it is a heartbeat. It sets code, found (the entry, if there is one) and order (which an operator
# gave). False: Redis has answered an error.
take() {
  lua take '' 4 "$queue-input" "$queue:taken:$owner" "$queue:workers" "$queue:orders" '' "$owner" "$new" "$1" 0 "$pool" || return 1
  reply=${reply#*$'\n'}
  code=${reply%%$'\n'*} reply=${reply#*$'\n'}
  reply=${reply%$'\n'}
  order=${reply##*$'\n'} found=${reply%$'\n'*} new=''
  if [[ $order == stop* ]]; then stopping=${stopping:-$SECONDS}; fi
}

# forgotten: was the worker silent for too long? Then others have its attempt.
forgotten() {
  if [ "$code" != 0 ]; then return 1; fi
  echo "forgotten as $owner: the worker was silent for too long, and its attempt was requeued" >&2
  rename
}

# beat gives a heartbeat a second until the worker has ended or was forgotten: whoever finds it gone asks Redis. It is in the process group of the worker,
# which is stopped and killed as one; on Linux it is silent, too, while the worker alone is stopped.
beat() {
  trap '' TERM INT
  while sleep 1 && kill -0 $$; do
    case $(cat /proc/$$/stat) in
      *') T '*) continue ;; # stopped
      *') Z '* | *') X '*) return ;; # ended, and nobody has waited for it
    esac
    if take 0 && [ "$code" = 0 ]; then return; fi
  done
}

beats() { [ -n "$beater" ] && kill -0 "$beater" 2>/dev/null; }
beater='' doubt=''

# move takes the next entry, or waits up to a second for one. False: there is none yet.
move() {
  if ! take 1; then
    doubt=yes # the list may have an entry
    printf '%s\n' "$reply" >&2
    if [[ $new == 1 && $reply == NOPERM* ]]; then
      plain=yes
      echo 'working as with REFRESHD_PLAIN: the attempt of a dead worker waits for its deadline' >&2
    fi
    sleep 1
    return 1
  fi
  doubt=''
  if forgotten; then return 1; fi
  if ! beats; then
    set +m
    beat <&- >/dev/null 2>&1 &
    beater=$!
    disown
    set -m
  fi
  if [ "$code" = 2 ] || [ -n "$found" ]; then # 2: the whole list, as a reply was lost
    entry=$found held=yes
    return
  elif [ -n "$order" ]; then
    sleep 1 # it gets nothing while it has one
  else
    redis BLMOVE "$queue-input" "$queue-input" LEFT LEFT 1 >/dev/null || sleep 1
  fi
  return 1
}

# answer MESSAGE ends the attempt in hand, and removes its entry in the same step; neither, if it was requeued. It prints the error, if there is one.
answer() { lua answer "$entry" 2 "$queue-output" "$queue:taken:$owner" 1 @ "$1" || { printf %s "$reply" && return 1; }; }

# drop removes an entry that needs no message, by removing the list: it has no other. Bash cannot name an entry that is not text.
drop() {
  redis DEL "$queue:taken:$owner" >/dev/null || { answer '' >&2 && [[ $reply == 1* ]]; } || rename
  held=''
}

stopping= # since when, by SECONDS
trap 'stopping=${stopping:-$SECONDS}' TERM INT

# message --arg type TYPE [--arg FIELD VALUE...] is one about the attempt in hand.
message() { calm jq -cn "$@" --arg uid "$uid" --arg refresh_attempt_uid "$fence" '$ARGS.named'; }

# push MESSAGE prints the error, if Redis does not take it. A signal may have ended the process that writes a message: then there is none.
push() { [ -z "$1" ] || redis -x RPUSH "$queue-output" 2>&1 >/dev/null <<<"$1"; }

# say TYPE [--arg FIELD VALUE...] pushes a message, and after an error again until the attempt no longer counts. False: it may not have reached
# Redis.
say() {
  local text error wait=100 pause send=push
  for _ in 1 2 3; do
    if text=$(message --arg type "$@"); then break; fi
  done
  if [ -z "$text" ]; then return 1; fi
  if [ -n "$held" ] && [ "$1" != started ]; then send=answer; fi
  until error=$("$send" "$text"); do
    if [[ $error =~ ^(NOPERM|WRONGTYPE) ]] || { [ -n "$stopping" ] && ((SECONDS >= stopping + 10)); } || over ending || { passed && [ -z "$begun" ] && ((SECONDS > taken + 60)); }; then
      echo "attempt $fence of $uid: $1 may not have reached redis: $error" >&2
      return 1
    fi
    pause=$((wait / 2 + RANDOM % (wait / 2)))
    sleep "$((pause / 1000)).$(printf %03d $((pause % 1000)))"
    wait=$((wait < 500 ? 2 * wait : 1000))
  done
  if [ "$send" = answer ]; then held=''; fi
}

# passed: has the deadline passed, as Redis said last?
passed() {
  local now
  TZ=UTC printf -v now '%(%FT%T)T' -1
  [ -n "$deadline" ] && [[ $now > $deadline ]]
}

# over [ending]: does the attempt in hand no longer count? While Redis does not answer it does, and that of a damaged model until the deadline last heard
# of. A deadline that passes before `started` is applied moves. A message that only waits to be sent counts however late: an outage is nobody's timeout.
over() {
  local found code order
  if [ -n "$held" ] && ! beats && take 0 && forgotten; then return 0; fi
  if ! found=$(redis HGET "$queue:model:$uid" attempt_uid 2>&1); then
    printf '%s\n' "$found" >&2
    if [[ $found == *WRONGTYPE* ]]; then passed; return; fi
    taken=$SECONDS # the minute that it may wait to begin is one of answers
    [ -z "${1:-}" ] && passed && [ -n "$begun" ]
    return
  fi
  if [ "$found" != "$fence" ]; then return 0; fi
  if found=$(redis HGET "$queue:model:$uid" deadline_at) && [[ $found =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z$ ]]; then deadline=$found; fi
  passed && begun=${begun:-$(redis HGET "$queue:model:$uid" processing_at)} && [ -n "$begun" ] && [ -z "${1:-}" ]
}

# status sends the latest line of the program to the owner, unless it was sent already. It may be lost.
status() {
  local line
  if [ -s "$dir/status" ] && line=$(<"$dir/status") && [ "$line" != "$sent" ]; then
    sent=$line signed=$SECONDS
    : >"$dir/signed"
    push "$(message --arg type user_friendly_status --arg status "$line")" >&2
  fi
}

# sign sends a sign of life, a status without a text, if the program has printed something since the last message.
sign() {
  if [ -z "$signs" ] || ((SECONDS < signed + signs)); then return; fi
  if [ "$dir/status" -nt "$dir/signed" ] || [ "$dir/err" -nt "$dir/signed" ]; then
    signed=$SECONDS
    : >"$dir/signed"
    push "$(message --arg type user_friendly_status)" >&2
  fi
}

# logged sets more to the log as an argument of message. A program gets arguments of at most 128 KiB, and jq writes some bytes as six.
logged() {
  local most
  more=()
  if ! [ -s "$log" ]; then return; fi
  for most in 65536 16384; do
    calm tail -c "$most" "$log" | LC_ALL=C calm sed $'1s/^[\x80-\xbf]*//' >"$dir/tail" # not within a character
    if (($(calm jq -Rs . "$dir/tail" | calm wc -c) < 100000)); then break; fi
  done
  more=(--rawfile log "$dir/tail")
}

# counted sets numbers to those of the program, as an argument of message.
counted() {
  local text
  numbers=()
  if [ -s "$dir/metrics" ] && text=$(calm jq -ec '.metrics | objects' "$dir/metrics"); then numbers=(--argjson metrics "$text"); fi
}

# work does the attempt in hand, in the background so that a signal and a lost fence are noticed.
work() {
  local dir log=/dev/null errors program reader opened written code lost='' sent='' asked=$SECONDS signed=$SECONDS signal=TERM tee='' more numbers
  dir=$(calm mktemp -d) || dir=$(calm mktemp -d) # a signal may end a program before it is calm
  calm mkfifo "$dir/out" || [ -p "$dir/out" ] || calm mkfifo "$dir/out"
  errors=$dir/err
  if [ -n "${REFRESHD_LOG:-}" ] && calm mkfifo "$dir/errors"; then
    log=$dir/log errors=$dir/errors
  fi
  exec {opened}<>"$dir/out" {written}<>"$errors" # a program may end before it opens them, and who reads would wait for ever
  if [ "$log" != /dev/null ]; then
    tee -a "$log" <"$errors" >"$dir/err" {opened}>&- {written}>&- &
    tee=$!
  fi
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '{"metrics":'*) printf %s "$line" >"$dir/metrics" ;;
      *) printf %s "${line:0:2000}" >"$dir/status" ;;
    esac
    printf '%s\n' "$line" >>"$log"
  done <"$dir/out" {opened}>&- {written}>&- &
  reader=$!
  "$@" <<<"$entry" >"$dir/out" 2>"$errors" {opened}>&- {written}>&- &
  program=$!
  while kill -0 "$program" 2>/dev/null; do
    sleep 0.1 &
    wait $! # ends early by a signal
    if ((SECONDS > asked)) && [ -z "$lost" ]; then
      asked=$SECONDS
      status
      sign
      if over; then lost=over; fi
    fi
    if [ -n "$stopping" ]; then lost=${lost:-shutdown}; fi
    if [ -z "$lost" ]; then continue; fi
    kill "-$signal" -- "-$program" 2>/dev/null
    if ((++ending > 20)); then signal=KILL; fi
  done
  wait "$program"
  code=$?
  exec {opened}>&- {written}>&-
  kill -- "-$program" 2>/dev/null # whom it has left behind
  wait "$reader" ${tee:+"$tee"}
  logged
  case $lost/$code in
    over/*) ;;
    */0) status; counted; say success "${numbers[@]}" "${more[@]}" ;;
    shutdown/*) say interrupted "${more[@]}" ;;
    *) status; say failure --arg reason "$(tail -n 1 "$dir/err" | head -c 2000)" --arg error_type "exit_$code" "${more[@]}" ;;
  esac
  calm rm -r "$dir" || calm rm -rf "$dir"
}

# >>> scripts of refreshd, written by: go test ./scripts -run TestTheClients -update
take_digest=a4c1cd36c70c6c8966c0342aec062366316fba1a
IFS= read -rd '' take_script <<'LUA'
local function clock(argument)
  if argument ~= '' then
    return argument
  end
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
local input, taken, workers, orders = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, owner, new = clock(ARGV[1]), ARGV[2], ARGV[3]
local most, known, pool = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local wrong, unfit = wrong_type({'list',
  'list',
  'zset',
  'hash'})
if unfit[3] or (unfit[1] or unfit[2]) and most > 0 then
  return wrong
end
if new == '' and not redis.call('ZSCORE', workers, owner) then
  return {now, 0, {}, ''}
end
redis.call('ZADD', workers, now, owner)
local entries, order = {}, not unfit[4] and redis.call('HGET', orders, pool) or ''
if most == 0 then
  return {now, 1, entries, order}
end
if redis.call('LLEN', taken) > known then
  return {now, 2, redis.call('LRANGE', taken, 0, -1), order}
end
if order ~= '' then
  return {now, 1, entries, order}
end
for _ = 1, math.min(most, redis.call('LLEN', input)) do
  entries[#entries + 1] = redis.call('LMOVE', input, taken, 'LEFT', 'RIGHT')
end
return {now, 1, entries, order}
LUA
answer_digest=f9d19687854ff6b49b48f4439f0a55026bbdbac3
IFS= read -rd '' answer_script <<'LUA'
local function misfit(place, expected)
  local found = redis.pcall('TYPE', KEYS[place]).ok
  if found and found ~= 'none' and found ~= expected then
    return KEYS[place] .. ' holds a ' .. found .. ', expected a ' .. expected
  end
end
local function wrong_type(expected)
  local first, misfits = nil, {}
  for place, kind in ipairs(expected) do
    misfits[place] = misfit(place, kind)
    if misfits[place] and not first then
      first = redis.error_reply('WRONGTYPE ' .. misfits[place])
    end
  end
  return first, misfits
end
local wrong = wrong_type({'list',
  'list'})
if wrong then
  return wrong
end
local output, taken = KEYS[1], KEYS[2]

local codes = {}
for i = 1, #ARGV, 3 do
  local ends, entry, message = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local code = 3
  if ends == '' or redis.call('LREM', taken, 1, entry) == 1 then
    code = 1
    if message ~= '' then
      redis.call('RPUSH', output, message)
    end
  end
  codes[#codes + 1] = code
end
return codes
LUA
# <<< scripts

while [ -z "$stopping" ]; do
  if [ -z "$plain" ]; then
    move || continue
  elif ! entry=$(redis BLPOP "$queue-input" 1 | calm tail -n +2); then
    sleep 1
    continue
  fi
  # Else nothing came, or an entry that no message can name.
  if read -r uid fence deadline < <(calm jq -er '"\(.big_table_uid | strings | select(. != "")) \(.refresh_attempt_uid | strings | select(. != "")) \(.deadline_at // "")"' <<<"$entry" 2>/dev/null); then
    taken=$SECONDS begun='' ending=0
    if ! over && say started --arg worker "$(hostname)" ${signs:+--argjson signs_every "$signs"}; then work "$@"; fi # over: superseded while it stood in line
  fi
  # An attempt without an answer is requeued.
  if [ -n "$held" ] && { [ -z "$stopping" ] || { ((SECONDS < stopping + 10)) && over && [ -n "$held" ]; }; }; then drop; fi
done
if [ -n "$beater" ]; then kill -KILL "$beater" 2>/dev/null; fi
if [ -z "$plain$held$doubt" ]; then redis ZREM "$queue:workers" "$owner" >/dev/null; fi
