package testkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit/check"
)

// node is one redis-server with its port and directory, which it keeps when it is killed and started again.
type node struct {
	addr string
	dir  string
	args []string

	*Process // nil: it was never started
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

// Nowhere is an address of this machine where nobody ever listens. A free one may be given to the next who asks for a port.
const Nowhere = "127.0.0.1:1"

// FreeAddress returns an address of this machine that nobody listens on yet.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	check.Must(t, err)
	return net.JoinHostPort("127.0.0.1", port)
}

// freePort draws a port below the ports that systems assign themselves (Linux from 32768 on, others from 49152): nobody takes it before
// it is used, nor does another test.
func freePort() (string, error) {
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(22_000))
		if !reserve(port) {
			continue
		}
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, listener.Close()
		}
	}
	return "", errors.New("find a free port: 100 of those from 10000 to 32000 are taken")
}

// start runs the server and returns when it answers.
func (n *node) start() (err error) {
	command := exec.Command("redis-server", n.args...)
	command.SysProcAttr = DieWithParent()
	command.WaitDelay = time.Second // a child that saves may hold its output open
	if n.Process, err = launch(command); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), check.Limit)
	defer cancel()
	if err := poll(ctx, n.exited, n.answers); err != nil {
		return fmt.Errorf("await redis-server at %s: %w%s", n.addr, err, n.logTail())
	}
	return nil
}

// answers reports whether the server at the address of n is n. It compares process ids, because a server of somebody else may
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
		if !strings.Contains(info, fmt.Sprintf("\r\nprocess_id:%d\r\n", n.command.Process.Pid)) {
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

func (n *node) isDead() bool {
	select {
	case <-n.exited:
		return true
	default:
		return false
	}
}

func (n *node) stop() {
	if n.Process != nil {
		n.Kill()
	}
	_ = os.RemoveAll(n.dir)
}

func (n *node) logTail() string {
	const most = 1000
	log := n.output.String()
	return "\nits log ends with:\n" + log[max(0, len(log)-most):]
}
