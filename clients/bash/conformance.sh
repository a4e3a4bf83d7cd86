#!/usr/bin/env bash
# The work that `refreshd conformance` asks for; see clients/README.md.
#
#   refreshd conformance -- clients/bash/worker.sh clients/bash/conformance.sh
set -euo pipefail

entry=$(cat)
field() { jq -r "$1 // empty" <<<"$entry"; }

field .status
for ((left = $(jq '.after_ms // 0' <<<"$entry"); left > 0; left -= 1000)); do
  printf -v seconds '%d.%03d' $((left >= 1000)) $((left >= 1000 ? 0 : left))
  sleep "$seconds"
  echo 'working' >&2 # a sign of life, if the worker announces them
done
case $(field .do) in
  digest) jq -j .text <<<"$entry" | sha256sum | cut -d ' ' -f 1 ;;
  fail)
    field .reason >&2
    exit 1
    ;;
  hang) while kill -0 "$PPID" 2>/dev/null; do sleep 1; done ;; # as long as its worker lives
esac
