package testkit

import "syscall"

// dieWithParent lets the kernel end a server whose test process was killed or ran into its time limit, when no cleanup runs.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
