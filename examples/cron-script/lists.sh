#!/bin/bash
set -o pipefail
redis() { redis-cli -u "$REDIS_URL" --raw "$@"; }

while entry=$(redis BLPOP bigtables-input 0 | tail -n 1); do
  reason=$(curl -fsSO --proto =http,https --url "$(jq -r .input_url <<<"$entry")" 2>&1) && type=success || type=failure
  redis RPUSH bigtables-output "$(jq -c --arg type $type --arg reason "$reason" \
    '{$type, $reason, big_table_uid, refresh_attempt_uid}' <<<"$entry")"
done
