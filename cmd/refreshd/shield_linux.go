package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// shield keeps other processes of the same user, such as the programs of --exec, from reading the environment and the memory of this
// one, where the address of Redis stands with its password. To unset a variable would not do: /proc/PID/environ shows what a process
// was started with. Root with CAP_SYS_PTRACE, CAP_PERFMON or CAP_SYS_ADMIN reads all the same. What is started is not shielded. There
// is no core dump.
func shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shield the environment from programs: %w", err)
	}
	return nil
}
