package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// Config tunes a dashboard. Only Clock is required.
type Config struct {
	// Listen is the address to serve on. Defaults to 127.0.0.1:8090; port 0 is any that is free.
	Listen string
	// Hosts are further names, without a port, by which browsers may ask for it. Defaults to none. If it listens beyond loopback and none is given,
	// any name will do, because a token protects it.
	Hosts []string
	// Tokens sign in whoever knows one, under its name or By. Defaults to none, which is allowed on loopback only.
	Tokens []Token
	// TrustedProxies are proxies in front: X-Forwarded-For of their requests names the client. Defaults to none.
	TrustedProxies []netip.Prefix
	// ReadOnly offers and accepts no action.
	ReadOnly bool
	// By names who wants an action without a token, for journal and history. Defaults to "dashboard".
	By string
	// Grace is how long answers under way may go on at the end. Defaults to 0: not at all.
	Grace time.Duration
	// Tick is how often it checks whether a queue has changed and open pages must be read again. Defaults to 2 s.
	Tick time.Duration
	// Clock is the clock of this process, for sessions and sign-ins. Pages use the clock of Redis.
	Clock func() time.Time
	// Log receives errors. Defaults to none.
	Log *zerolog.Logger
	// Observe is called when a tick begins, and its result when it has ended. Defaults to none.
	Observe func() func(error)
}

// DefaultListen is the default of Config.Listen.
const DefaultListen = "127.0.0.1:8090"

const minToken = 16 // bytes

// WithDefaults returns a copy with every unset field filled.
func (c Config) WithDefaults() Config {
	c.Listen, c.By = cmp.Or(c.Listen, DefaultListen), cmp.Or(c.By, "dashboard")
	c.Tick, c.Log = cmp.Or(c.Tick, 2*time.Second), cmp.Or(c.Log, new(zerolog.Nop()))
	c.Tokens = slices.Clone(c.Tokens)
	for i := range c.Tokens {
		c.Tokens[i].Name = cmp.Or(c.Tokens[i].Name, c.By)
	}
	if c.Observe == nil {
		c.Observe = func() func(error) { return func(error) {} }
	}
	return c
}

// Validate reports the first field out of range.
func (c Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	switch {
	case err != nil:
		return document.Refuse("listen", "an address such as "+DefaultListen, document.Found(c.Listen))
	case len(c.Tokens) == 0 && !isLoopback(host):
		return document.Refuse("listen", "an address of loopback, or a token beside it", document.Found(c.Listen)+" and no token")
	case c.By != document.Shorten(c.By, model.MaxBy):
		return fmt.Errorf("by: expected at most %d bytes on one line, found %s", model.MaxBy, document.Found(c.By))
	case c.Grace < 0 || c.Tick <= 0:
		return errors.New("grace, tick: expected no negative length of time, found one")
	case c.Clock == nil:
		return errors.New("clock: expected a clock, found none")
	}
	return validateTokens(c.Tokens)
}

// isLoopback reports whether a host, without a port, can only be this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
