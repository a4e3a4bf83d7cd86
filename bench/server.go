package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is the Redis that all contenders share, each with an empty one.
type server struct {
	addr, version string
	bus           string // port for the other nodes, where it is one of a cluster
	client        *redis.Client
	process       *exec.Cmd
}

type result struct {
	perSecond     float64
	redisMicros   float64 // of CPU, a cycle; of two Redis processes together
	processMicros float64 // likewise, of the processes that serve the contender

	commands float64 // of Redis a cycle, also those that scripts call

	// Of a load only:
	seen
	delay time.Duration // by which a slow host made the last attempt of the others end later
}

func startServer(ctx context.Context, program, dir string, args ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	bus, err := freePort() // the default, port + 10000, may be above 65535
	if err != nil {
		return nil, err
	}
	args = append(args, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", dir, "--cluster-port", bus, "--cluster-config-file", port+".conf")
	addr := net.JoinHostPort("127.0.0.1", port)
	s := &server{addr: addr, bus: bus, process: exec.Command(program, args...)}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	s.client = redis.NewClient(&redis.Options{Addr: addr})
	for range 100 {
		if err = s.client.Ping(ctx).Err(); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("await %s: %w", program, err)
	}
	info, err := s.info(ctx)
	s.version = program + " " + info["redis_version"]
	if valkey := info["valkey_version"]; valkey != "" {
		s.version = program + " " + valkey
	}
	return s, err
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

func (s *server) stop() {
	if s.client != nil {
		_ = s.client.Close()
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
}

func (s *server) info(ctx context.Context) (map[string]string, error) {
	text, err := s.client.Info(ctx, "all").Result()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, err
}

// spent is what some servers have done so far.
type spent struct {
	busy     time.Duration // for which they kept processors busy
	commands int
}

func spentBy(ctx context.Context, servers []*server) (sum spent, err error) {
	for _, s := range servers {
		info, err := s.info(ctx)
		if err != nil {
			return spent{}, err
		}
		var sys, user float64
		_, _ = fmt.Sscan(info["used_cpu_sys"], &sys)
		_, _ = fmt.Sscan(info["used_cpu_user"], &user)
		sum.busy += time.Duration((sys + user) * float64(time.Second))
		for name, stats := range info {
			if strings.HasPrefix(name, "cmdstat_") {
				var calls int
				_, _ = fmt.Sscanf(stats, "calls=%d", &calls)
				sum.commands += calls
			}
		}
	}
	return sum, nil
}

// around runs do, which does n cycles on some servers, and returns what it cost. It takes this process for the one that serves the contender.
func around(ctx context.Context, n int, do func() error, servers ...*server) (r result, err error) {
	before, err := spentBy(ctx, servers)
	if err != nil {
		return r, err
	}
	began, own := time.Now(), ownBusy()
	if err := do(); err != nil {
		return r, err
	}
	r.perSecond = float64(n) / time.Since(began).Seconds()
	r.processMicros = micros(ownBusy()-own, n)
	after, err := spentBy(ctx, servers)
	r.redisMicros = micros(after.busy-before.busy, n)
	r.commands = float64(after.commands-before.commands) / float64(n)
	return r, err
}

// ownBusy is for how long this process has kept processors busy.
func ownBusy() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // of itself it may always ask
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func micros(busy time.Duration, n int) float64 { return float64(busy.Microseconds()) / float64(n) }
