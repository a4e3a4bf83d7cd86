//go:build !unix

package conformance

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func terminate(command *exec.Cmd) error { return command.Process.Signal(os.Interrupt) }

func kill(command *exec.Cmd) error { return command.Process.Kill() }
