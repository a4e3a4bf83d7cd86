package store

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

var (
	noHost       = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	ownerPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+):(\d+)(?:-(\d{8}T\d{6}Z))?-[a-z2-7]+$`)
)

// ownerTime is how the name of an owner tells since when it is there.
const ownerTime = "20060102T150405Z"

// NewOwner names a daemon of this process for people: host, process and since when, with letters behind them that nobody else has. Without a clock it
// does not tell since when.
func NewOwner(clock func() time.Time) string {
	host, err := os.Hostname()
	if host = noHost.ReplaceAllString(host, "-"); err != nil || host == "" {
		host = "unknown"
	}
	since := ""
	if clock != nil {
		since = clock().UTC().Format(ownerTime) + "-"
	}
	return fmt.Sprintf("%.60s:%d-%s%s", host, os.Getpid(), since, strings.ToLower(rand.Text()[:8]))
}

// Owner is what the name of a daemon tells.
type Owner struct {
	Host  string    `json:"host,omitempty"` // empty: somebody has chosen the name
	PID   string    `json:"pid,omitempty"`
	Since time.Time `json:"since,omitzero"` // by the clock of its host; zero: not told
}

// ReadOwner reads the name of a daemon.
func ReadOwner(name string) (o Owner) {
	if found := ownerPattern.FindStringSubmatch(name); found != nil {
		o.Host, o.PID = found[1], found[2]
		o.Since, _ = time.Parse(ownerTime, found[3]) // zero if it is not told
	}
	return o
}
