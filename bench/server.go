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
	client        *redis.Client
	process       *exec.Cmd
}

type result struct {
	perSecond   float64
	redisMicros float64 // of CPU, a cycle

	// Of limits only:
	most  int           // attempts that ran on a host at a time
	delay time.Duration // by which a slow host made the last attempt of the others end later
}

func startServer(ctx context.Context, program, dir string) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(addr)
	s := &server{addr: addr, process: exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", dir)}
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

func (s *server) stop() {
	if s.client != nil {
		_ = s.client.Close()
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
}

func (s *server) info(ctx context.Context) (map[string]string, error) {
	text, err := s.client.Info(ctx).Result()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, err
}

// busy is for how long Redis has kept a processor busy.
func (s *server) busy(ctx context.Context) (time.Duration, error) {
	info, err := s.info(ctx)
	var sys, user float64
	_, _ = fmt.Sscan(info["used_cpu_sys"], &sys)
	_, _ = fmt.Sscan(info["used_cpu_user"], &user)
	return time.Duration((sys + user) * float64(time.Second)), err
}

// around runs do, which does n cycles, and tells what it cost.
func (s *server) around(ctx context.Context, n int, do func() error) (result, error) {
	before, err := s.busy(ctx)
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	after, err := s.busy(ctx)
	return result{perSecond: float64(n) / took.Seconds(), redisMicros: float64((after - before).Microseconds()) / float64(n)}, err
}
