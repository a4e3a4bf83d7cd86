#!/usr/bin/env bash
# serve 14.2.7 (serve-handler 6.1.7), http-server 14.1.1 and sirv 3.0.2, web servers for files of npm, on Node.js 20.
#
# Behaviour: they do not read If-Range. Whoever resumes a download, as browsers do, is sent the rest of whatever file is there by now: 206, and the two
# halves of two versions make one file of the right length. serve and http-server offer ranges, by Accept-Ranges. The first response had what the condition
# needs: a strong ETag of serve, a Last-Modified of the others.
# Expected: 200 and the new file, whole, as express 5.3.0 does (send 1.2.1). Source: RFC 9110, 13.1.5: "A recipient of an If-Range header field MUST ignore
# the Range header field if the If-Range condition evaluates as false."
set -euo pipefail
directory=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$directory"' EXIT
cd "$directory"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund serve@14.2.7 http-server@14.1.1 sirv@3.0.2 express@5.3.0 >/dev/null
mkdir www
port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')

write() { # write LETTER DATE: 2,000 bytes of it
  head -c 2000 /dev/zero | tr '\0' "$1" >www/feed.txt
  touch -d "$2" www/feed.txt
}

header() { tr -d '\r' <"$1" | sed -n "s/^$2: //Ip"; }

resume() { # resume NAME COMMAND…: half of a file, and the rest of it after it has changed
  local name=$1 url=http://127.0.0.1:$port/feed.txt by=ETag validator status
  shift
  write a '2026-11-01 UTC'
  "$@" >/dev/null 2>&1 &
  server=$!
  curl -s --retry 20 --retry-connrefused --retry-delay 1 -D first -o got -r 0-999 "$url"
  validator=$(header first etag)
  if [ -z "$validator" ] || [[ $validator == W/* ]]; then by=Last-Modified validator=$(header first last-modified); fi
  write b '2026-11-02 UTC'
  curl -s -D second -o rest -r 1000- -H "If-Range: $validator" "$url"
  status=$(head -1 second | cut -d' ' -f2)
  if [ "$status" = 206 ]; then cat rest >>got; else mv rest got; fi
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
  echo "$name: If-Range with its $by, $status, $(tr -cd a <got | wc -c) bytes of the old file and $(tr -cd b <got | wc -c) of the new"
}

{
  resume serve node_modules/.bin/serve --no-clipboard --listen "tcp://127.0.0.1:$port" www
  resume http-server node_modules/.bin/http-server -a 127.0.0.1 -p "$port" www
  resume sirv node -e "require('http').createServer(require('sirv')('www', { dev: true })).listen($port, '127.0.0.1')"
  resume express node -e "const e = require('express'); e().use(e.static('www')).listen($port, '127.0.0.1')"
} | tee seen.txt
diff seen.txt - <<'SEEN'
serve: If-Range with its ETag, 206, 1000 bytes of the old file and 1000 of the new
http-server: If-Range with its Last-Modified, 206, 1000 bytes of the old file and 1000 of the new
sirv: If-Range with its Last-Modified, 206, 1000 bytes of the old file and 1000 of the new
express: If-Range with its Last-Modified, 200, 0 bytes of the old file and 2000 of the new
SEEN
