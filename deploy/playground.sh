#!/usr/bin/env bash
# Builds the playground as static files: deploy/playground.sh DIR
set -euo pipefail
mkdir -p "${1:?expected a directory}"
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

GOOS=js GOARCH=wasm go build -trimpath -ldflags='-s -w' -o "$dir/playground.wasm" ./cmd/playground
static=internal/ui/dashboard/static
install -m 644 "$(go env GOROOT)/lib/wasm/wasm_exec.js" cmd/playground/*.{html,js} "$static"/{playground.js,style.css,icon.svg} "$dir"
chmod 644 "$dir/playground.wasm"
