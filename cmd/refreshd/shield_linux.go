package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// shield keeps other processes of the same user, such as the programs of --exec, from reading the environment and memory of this one: the address of
// Redis has a password. Unsetting a variable would not help, because /proc/PID/environ shows the original one. Root with CAP_SYS_PTRACE, CAP_PERFMON
// or CAP_SYS_ADMIN still reads it. Child processes are not shielded. There is no core dump.
func shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shield the environment from programs: %w", err)
	}
	return nil
}
