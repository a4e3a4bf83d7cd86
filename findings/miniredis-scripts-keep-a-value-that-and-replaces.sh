#!/usr/bin/env bash
# github.com/alicebob/miniredis/v2 v2.40.0 with github.com/yuin/gopher-lua v1.1.1 (Go modules), in which scripts of Redis are tested.
#
# Behaviour: in a script, "x = f() and x" and "x = t.k and x" leave the local x as it is when the left side is false or nil. The same expression, given to
# another local, is right.
# Expected: x becomes what stands on the left. Source: the Lua 5.1 manual, 2.5.3 ("and returns its first argument if this value is false or nil"); lua 5.1.5
# gives false and nil, and EVAL of Redis 7.0.15 answers "false" to the first script here.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/alicebob/miniredis/v2@v2.40.0 github.com/yuin/gopher-lua@v1.1.1 github.com/redis/go-redis/v9@v9.23.0 >/dev/null 2>&1

cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func main() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	for _, script := range []string{
		"local slots = 5 slots = redis.call('GET', KEYS[1]) and slots return tostring(slots)",
		"local slots, t = 5, {} slots = t.k and slots return tostring(slots)",
		"local slots = 5 local left = redis.call('GET', KEYS[1]) and slots return tostring(left)",
	} {
		fmt.Println(client.Eval(context.Background(), script, []string{"missing"}).Val())
	}
}
GO
go run . | tee seen.txt
diff seen.txt - <<'SEEN'
5
5
false
SEEN
