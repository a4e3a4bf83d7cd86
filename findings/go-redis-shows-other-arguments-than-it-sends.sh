#!/usr/bin/env bash
# github.com/redis/go-redis/v9 v9.23.0 (Go module), with github.com/alicebob/miniredis/v2 v2.40.0 as the server.
#
# Behaviour: String() of a command, which hooks log and compare, shows three kinds of arguments otherwise than they are sent. A *string (like all
# pointers) is sent as its text and shown as an address, so that the same command looks different each time; a time.Duration is sent in nanoseconds and shown
# as "1m0s"; a bool is sent as 1 and shown as "true".
# Expected: the command as it is sent. Source: internal/proto/writer.go of the same release, WriteArg, which sends these kinds; for strings, numbers, times and
# bytes String() agrees with it.
set -euo pipefail
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
export GOFLAGS=-mod=mod
go mod init finding >/dev/null 2>&1
go get github.com/redis/go-redis/v9@v9.23.0 github.com/alicebob/miniredis/v2@v2.40.0 >/dev/null 2>&1

cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func main() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()
	client, ctx, text := redis.NewClient(&redis.Options{Addr: server.Addr()}), context.Background(), "text"
	for _, value := range []any{text, &text, time.Minute, true} {
		command := client.Do(ctx, "echo", value)
		fmt.Printf("%s\n", command)
	}
}
GO
go run . | sed 's/0x[0-9a-f]*/ADDRESS/' | tee seen.txt
diff seen.txt - <<'SEEN'
echo text: text
echo ADDRESS: text
echo 1m0s: 60000000000
echo true: 1
SEEN
