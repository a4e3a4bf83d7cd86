#!/usr/bin/env bash
# A worker of refreshd in Bash, with redis-cli and jq: one attempt at a time.
#
#   worker.sh PROGRAM [ARGUMENT...]
#
# PROGRAM gets the attempt as one line of JSON on stdin. Exit code 0 is success; otherwise its last line on stderr is the reason. It is ended by
# SIGTERM when the attempt no longer counts. What it prints on stdout is told to the owner of the model, line by line.
#
# It asks Redis once a second, and knows neither queues of several parts nor names of their own: for those take one of the other clients, or
# `refreshd worker --exec PROGRAM`, which needs neither jq nor this script.
set -uo pipefail
set -m # each program leads a process group of its own

queue=${REFRESHD_QUEUE:-bigtables}
url=${REDIS_URL:-redis://127.0.0.1:6379}
# calm runs a program that a signal to the worker does not end, too: it may hold an attempt.
calm() (
  trap '' TERM INT
  exec "$@"
)
redis() { calm redis-cli -u "$url" --no-auth-warning "$@"; }

stopping=
trap 'stopping=1' TERM INT

# say TYPE [JQ-ARGUMENTS...] pushes a message about the attempt in hand; further --arg become fields. What Redis did not take is pushed again.
say() {
  local type=$1 message tries=30
  shift
  message=$(calm jq -cn --arg type "$type" --arg uid "$uid" --arg refresh_attempt_uid "$fence" "$@" '$ARGS.named')
  until redis RPUSH "$queue-output" "$message" >/dev/null || ! ((tries--)); do sleep 1; done
}

# current: does the attempt in hand count? While Redis does not answer it does.
current() {
  local found
  found=$(redis HGET "$queue:model:$uid" attempt_uid) || return 0
  [ "$found" = "$fence" ]
}

# work does the attempt in hand, in the background so that a signal and a lost fence are noticed.
work() {
  local dir program reader code lost='' asked=0
  dir=$(mktemp -d)
  mkfifo "$dir/out"
  while IFS= read -r line; do say user_friendly_status --arg status "$line"; done <"$dir/out" &
  reader=$!
  "$@" <<<"$entry" >"$dir/out" 2>"$dir/err" &
  program=$!
  while kill -0 "$program" 2>/dev/null; do
    sleep 0.1 &
    wait $! # ends early by a signal
    if ! ((++asked % 10)) && ! current; then lost=fence; fi
    if [ -n "$stopping" ]; then lost=${lost:-shutdown}; fi
    if [ -n "$lost" ]; then kill -- "-$program" 2>/dev/null; fi
  done
  wait "$program"
  code=$?
  kill -- "-$program" 2>/dev/null # whom it has left behind
  wait "$reader"
  case $lost/$code in
    fence/*) ;;
    */0) say success ;;
    shutdown/*) say interrupted ;;
    *) say failure --arg reason "$(tail -n 1 "$dir/err")" --arg error_type "exit_$code" ;;
  esac
  rm -r "$dir"
}

while [ -z "$stopping" ]; do
  entry=$(redis BLPOP "$queue-input" 1 | calm tail -n +2)
  if ! read -r uid fence < <(calm jq -er '"\(.big_table_uid | strings | select(. != "")) \(.refresh_attempt_uid | strings | select(. != ""))"' <<<"$entry" 2>/dev/null); then
    continue # nothing came, or what nobody can be told about
  fi
  if ! current; then continue; fi # superseded while it stood in line
  say started --arg worker "$(hostname)"
  work "$@"
done
