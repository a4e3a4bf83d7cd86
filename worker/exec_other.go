//go:build !unix

package worker

import (
	"fmt"
	"runtime"
)

// Exec needs process groups, which this system does not have; it always returns an error.
func Exec([]string, ExecOptions) (Handler, error) {
	return nil, fmt.Errorf("exec: expected a Unix system, found %s: use a worker over HTTP", runtime.GOOS)
}
