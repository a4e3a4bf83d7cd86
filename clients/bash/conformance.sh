#!/usr/bin/env bash
# The work that `refreshd conformance` asks for; see docs/worker.md.
#
#   refreshd conformance -- clients/bash/worker.sh clients/bash/conformance.sh
set -euo pipefail

entry=$(cat)
field() { jq -r "$1 // empty" <<<"$entry"; }

field .status
sleep "$(jq -r '(.after_ms // 0) / 1000' <<<"$entry")"
case $(field .do) in
  digest) jq -j .text <<<"$entry" | sha256sum | cut -d ' ' -f 1 ;;
  fail)
    field .reason >&2
    exit 1
    ;;
esac
