package store

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a client and Redis and loses a reply: to the first message that contains the text to cut. It lets
// Redis execute all of the message and then closes the connection.
type proxy struct {
	cut []byte

	mu    sync.Mutex
	sent  []byte              // guarded by mu: everything that clients sent
	ports map[string]net.Addr // guarded by mu: of each target, where the proxy listens for it
	open  []io.Closer         // guarded by mu
	done  sync.WaitGroup

	carried atomic.Int64 // bytes of replies
}

func newProxy(t *testing.T, cut string) *proxy {
	p := &proxy{cut: []byte(cut), ports: map[string]net.Addr{}}
	t.Cleanup(p.close)
	return p
}

// Addr returns where to reach target through the proxy.
func (p *proxy) Addr(target string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr := p.ports[target]; addr != nil {
		return addr.String(), nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.ports[target], p.open = listener.Addr(), append(p.open, listener)
	p.done.Go(func() { p.accept(listener, target) })
	return listener.Addr().String(), nil
}

// Dial is a dialer for clients that learn of their targets from Redis.
func (p *proxy) Dial(ctx context.Context, network, target string) (net.Conn, error) {
	addr, err := p.Addr(target)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// Text returns everything that was sent.
func (p *proxy) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.sent)
}

// Sent counts how often a text was sent.
func (p *proxy) Sent(text string) int {
	return strings.Count(p.Text(), text)
}

func (p *proxy) accept(listener net.Listener, target string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.join(client, server)
	}
}

// join carries bytes both ways until either side closes.
func (p *proxy) join(client, server net.Conn) {
	p.mu.Lock()
	p.open = append(p.open, client, server)
	p.mu.Unlock()
	cut := make(chan struct{})
	p.done.Go(func() { p.carryCommands(client, server, cut) })
	p.done.Go(func() { p.carryReplies(client, server, cut) })
}

// carryCommands expects a message to arrive in one piece, as it does on loopback up to 64 KiB.
func (p *proxy) carryCommands(client, server net.Conn, cut chan<- struct{}) {
	defer closeBoth(client, server)
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if p.note(buffer[:n]) {
			close(cut)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// note reports the first message that contains the text to cut.
func (p *proxy) note(message []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := bytes.Contains(p.sent, p.cut)
	p.sent = append(p.sent, message...)
	return !before && bytes.Contains(message, p.cut)
}

func (p *proxy) carryReplies(client, server net.Conn, cut <-chan struct{}) {
	defer closeBoth(client, server)
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-cut:
			awaitEnd(server)
			return
		default:
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
		p.carried.Add(int64(n))
	}
}

// awaitEnd returns when the server has executed what it was sent, noticed that no more will come and hung up.
func awaitEnd(server net.Conn) {
	_ = server.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, server)
}

func closeBoth(a, b io.Closer) {
	_ = a.Close()
	_ = b.Close()
}

func (p *proxy) close() {
	p.mu.Lock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}
