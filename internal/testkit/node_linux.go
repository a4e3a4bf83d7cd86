package testkit

import (
	"net"
	"sync"
	"syscall"
)

// reserved are listeners whose names keep other test processes from the same ports: between the draw of a port and its use somebody else may draw it,
// and then a test talks to the server of another. The kernel frees them with the process.
var reserved struct {
	sync.Mutex
	listeners []net.Listener // guarded by Mutex
}

// reserve takes a port for this process; false: another test has it.
func reserve(port string) bool {
	listener, err := net.Listen("unix", "@refreshd-test-port-"+port)
	if err != nil {
		return false
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.listeners = append(reserved.listeners, listener)
	return true
}

// DieWithParent lets the kernel end a program whose test process was killed or ran into its time limit, when no cleanup runs: a worker
// would go on, and find the servers of later tests behind the ports that it knows.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
