// Package redisurl reads the addresses of Redis that people write, and shows them without passwords.
package redisurl

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// Topology is what stands behind an address. It is named by the scheme and never guessed: a cluster of which only one node is given looks
// like a single server.
type Topology int

// The topologies.
const (
	Single Topology = iota
	Socket
	Cluster
	Sentinel
)

// Address is the parsed form of an address.
type Address struct {
	Scheme   string // as given, lower case
	Topology Topology
	TLS      bool

	Hosts              []string // host:port each, or the path of a socket
	Username, Password string   // of Redis; never of a sentinel
	DB                 int

	Master                             string // the name under which sentinels know the master
	SentinelUsername, SentinelPassword string
}

// schemes name topology and TLS.
var schemes = map[string]Address{
	"redis": {Topology: Single}, "rediss": {Topology: Single, TLS: true},
	"valkey": {Topology: Single}, "valkeys": {Topology: Single, TLS: true},
	"unix":          {Topology: Socket},
	"redis-cluster": {Topology: Cluster}, "rediss-cluster": {Topology: Cluster, TLS: true},
	"redis-sentinel": {Topology: Sentinel}, "rediss-sentinel": {Topology: Sentinel, TLS: true},
}

const (
	wantAddress = "host:port or a URL that begins with redis://, rediss://, unix://, redis-cluster:// or redis-sentinel://"
	wantEscaped = "%2F for / and %3F for ? and %23 for # in a password, and %40 for an @ that is not in front of the host"
	mute        = "***"
)

// refuse builds every error of this package. Callers never hand it what may be part of a password: nothing from in front of
// an @, no port that is not one, no value of an option.
func refuse(want, found string) error {
	return &document.Error{Field: "redis address", Want: want, Found: found}
}

// Parse reads every form of address that scripts.Connect documents. It does not use url.Parse, whose errors repeat the password and which
// knows neither several hosts nor sockets.
func Parse(text string) (Address, error) {
	scheme, rest, err := splitScheme(strings.TrimSpace(text))
	if err != nil {
		return Address{}, err
	}
	a := schemes[scheme]
	a.Scheme = scheme
	authority, path, query, err := splitParts(rest)
	if err == nil {
		authority, err = a.takeCredentials(authority)
	}
	if err == nil {
		err = a.parseHosts(authority)
	}
	if err == nil {
		err = a.parsePath(path)
	}
	if err == nil {
		err = a.parseQuery(query)
	}
	if err != nil {
		return Address{}, err
	}
	return a, nil
}

var schemePattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]{0,30}$`)

// splitScheme reads host:port as a shorthand for redis://host:port.
func splitScheme(text string) (scheme, rest string, err error) {
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	_, known := schemes[scheme]
	switch {
	case ok && known:
		return scheme, rest, nil
	case ok && schemePattern.MatchString(scheme):
		return "", "", refuse(wantAddress, strconv.Quote(scheme+"://"))
	case ok || strings.HasPrefix(text, "/"):
		return "", "", refuse(wantAddress, "another beginning")
	case text == "":
		return "", "", refuse(wantAddress, "nothing")
	case !strings.Contains(text, ":"):
		return "", "", refuse(wantAddress, "a text without port")
	}
	return "redis", text, nil
}

// splitParts cuts what follows the scheme into the hosts with their credentials, the path and the options.
func splitParts(rest string) (authority, path, query string, err error) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return rest, "", "", nil
	}
	authority, rest = rest[:end], rest[end:]
	if strings.Contains(rest, "@") {
		return "", "", "", refuse(wantEscaped, "one of / ? # in front of an @")
	}
	if strings.Contains(rest, "#") {
		return "", "", "", refuse("no fragment", "a #")
	}
	path, query, _ = strings.Cut(rest, "?")
	return authority, path, query, nil
}

// takeCredentials moves user and password into a and returns what follows. A user alone is refused: it is more often a
// password with its colon forgotten, and Redis would be asked as the default user.
func (a *Address) takeCredentials(authority string) (hosts string, err error) {
	at := strings.LastIndex(authority, "@")
	if at < 0 {
		return authority, nil
	}
	username, password, ok := strings.Cut(authority[:at], ":")
	if !ok || password == "" {
		return "", refuse("user:password or :password in front of the @", "no password")
	}
	if a.Username, err = url.PathUnescape(username); err != nil {
		return "", refuse("%25 for a % in the user", "a % without two hex digits")
	}
	if a.Password, err = url.PathUnescape(password); err != nil {
		return "", refuse("%25 for a % in the password", "a % without two hex digits")
	}
	return authority[at+1:], nil
}
