//go:build !unix

package handlers

import (
	"fmt"
	"runtime"

	"github.com/refreshd/refreshd/worker"
)

// Exec needs process groups, which this system does not have; it always returns an error.
func Exec([]string, ExecOptions) (worker.Handler, error) {
	return nil, fmt.Errorf("exec: expected a Unix system, found %s: use a worker over HTTP", runtime.GOOS)
}

// Shell needs process groups, as Exec does.
func Shell([]string, ExecOptions) (worker.Handler, error) { return Exec(nil, ExecOptions{}) }
