//go:build unix

package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/worker"
)

// Shell returns a handler that runs the field command of each payload, a text, by sh -c as Exec runs a program, but with an empty input. It is
// dangerous: whoever may save a model of the queue may run any command as the user of the process.
//
// With allowed, a command must be one of these texts, or begin with one, followed by a space and plain words: letters, digits and _./:=,@%+- are
// not special to a shell there, so they can only be arguments. Another command, or none, is a failure.
//
// The error says that there is no sh, or that a text of allowed is empty.
func Shell(allowed []string, options ExecOptions) (worker.Handler, error) {
	for _, prefix := range allowed {
		if strings.TrimSpace(prefix) != prefix || prefix == "" {
			return nil, errors.New("shell: expected the beginning of a command, without spaces around it, found " + document.Found(prefix))
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	options = options.withDefaults()
	return func(ctx context.Context, attempt *worker.Attempt) error {
		command, err := readCommand(attempt.Payload)
		if err == nil {
			err = checkAllowed(allowed, command)
		}
		if err != nil {
			return worker.ErrorType(err, "shell_refused")
		}
		return run(ctx, attempt, []string{sh, "-c", command}, nil, options)
	}, nil
}

func readCommand(payload []byte) (string, error) {
	var fields map[string]any
	_ = json.Unmarshal(payload, &fields) // a payload is an object wherever it comes from
	command, is := fields["command"].(string)
	if !is || strings.TrimSpace(command) == "" || strings.Contains(command, "\x00") {
		return "", document.Refuse("payload.command", "a command as text", document.Found(fields["command"]))
	}
	return command, nil
}

func checkAllowed(allowed []string, command string) error {
	if len(allowed) == 0 {
		return nil
	}
	for _, prefix := range allowed {
		rest, begins := strings.CutPrefix(command, prefix)
		if begins && (rest == "" || rest[0] == ' ' && !strings.ContainsFunc(rest, special)) {
			return nil
		}
	}
	return document.Refuse("payload.command", "a command that --shell-allow allows, with plain words behind it", document.Found(command))
}

// special reports whether a shell could see more in a letter than a part of a word, or a space.
func special(r rune) bool {
	plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" _./:=,@%+-", r)
	return !plain
}
