package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// node is one redis-server with its port and directory, which it keeps when it is killed and started again.
type node struct {
	addr string
	dir  string
	args []string

	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for
}

// errExited means that a server ended before it answered, most often because another process took the port meanwhile.
var errExited = errors.New("redis-server ended before it answered")

// onFreePorts tries a few times: between finding a port and using it the port may be taken.
func onFreePorts(try func() (*node, error)) (n *node, err error) {
	for range 5 {
		if n, err = try(); !errors.Is(err, errExited) {
			break
		}
	}
	return n, err
}

func tryNode(args []string) (*node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "testkit-")
	if err != nil {
		return nil, err
	}
	n := &node{addr: net.JoinHostPort("127.0.0.1", port), dir: dir}
	n.args = append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--daemonize", "no",
		"--save", "", "--appendonly", "no",
	}, args...)
	if err := n.start(); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

// FreeAddress returns an address of this machine that nobody listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	Must(t, err)
	return net.JoinHostPort("127.0.0.1", port)
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

// start runs the server and returns when it answers.
func (n *node) start() error {
	log, err := os.OpenFile(n.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	n.cmd = exec.Command("redis-server", n.args...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	n.cmd.SysProcAttr = dieWithParent()
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	cmd, exited := n.cmd, make(chan struct{})
	n.exited = exited
	go func() { _ = cmd.Wait(); close(exited) }()
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	defer cancel()
	if err := poll(ctx, n.exited, n.answers); err != nil {
		return fmt.Errorf("await redis-server at %s: %w%s", n.addr, err, n.logTail())
	}
	return nil
}

// answers tells whether the server at the address of n is n. It compares process ids, because a server of somebody else may
// have taken the port and would answer as well.
func (n *node) answers() bool {
	// A client's pool would wait for a second after a refused connection, so the port is tried without one first.
	conn, err := net.Dial("tcp", n.addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	err = withNode(n.addr, func(ctx context.Context, client *redis.Client) error {
		info, err := client.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, fmt.Sprintf("\r\nprocess_id:%d\r\n", n.cmd.Process.Pid)) {
			return errors.New("another server answered")
		}
		return client.Ping(ctx).Err() // INFO is answered while the data are still being loaded, PING is not
	})
	return err == nil
}

// poll asks ready again and again until it says yes, the process has exited or ctx ends.
func poll(ctx context.Context, exited <-chan struct{}, ready func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-exited:
			return errExited
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// kill ends the process and waits for it; it may be called again.
func (n *node) kill() {
	if n.exited == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.exited
}

func (n *node) isDead() bool {
	select {
	case <-n.exited:
		return true
	default:
		return false
	}
}

func (n *node) stop() {
	n.kill()
	_ = os.RemoveAll(n.dir)
}

func (n *node) logPath() string { return filepath.Join(n.dir, "redis.log") }

func (n *node) logTail() string {
	const most = 1000
	log, err := os.ReadFile(n.logPath())
	if err != nil {
		return ""
	}
	return "\nits log ends with:\n" + string(log[max(0, len(log)-most):])
}
