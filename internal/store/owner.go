package store

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
)

var noHost = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NewOwner names a daemon of this process for people: its host and process, with letters behind them that nobody else has.
func NewOwner() string {
	host, err := os.Hostname()
	if host = noHost.ReplaceAllString(host, "-"); err != nil || host == "" {
		host = "unknown"
	}
	return fmt.Sprintf("%.60s:%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:8]))
}
