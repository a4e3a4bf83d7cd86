//go:build unix

package handlers_test

import (
	"context"
	"fmt"
	"log"

	"github.com/refreshd/refreshd/worker"
	"github.com/refreshd/refreshd/worker/handlers"
)

// A program does the work; its exit code is the result and the last line of its stderr the reason.
func ExampleExec() {
	handler, err := handlers.Exec([]string{"sh", "-c", `echo "cannot read $REFRESHD_PAYLOAD_INPUT_URL" >&2; exit 65`}, handlers.ExecOptions{})
	if err != nil {
		log.Fatal(err)
	}
	told, err := worker.Try(context.Background(), handler,
		&worker.Attempt{UID: "tbl_1", AttemptUID: "a1", Payload: []byte(`{"input_url":"feed.csv"}`)})
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range told {
		fmt.Printf("%s: %s (%s), retryable: %t\n", message.Type, message.Reason, message.ErrorType, *message.Retryable)
	}

	// Output:
	// failure: cannot read feed.csv (exit_65), retryable: false
}
