package testkit

import "syscall"

// DieWithParent lets the kernel end a program whose test process was killed or ran into its time limit, when no cleanup runs: a worker
// would go on, and find the servers of later tests behind the ports that it knows.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
