package scripts

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

// topology is what stands behind an address. It is named by the scheme and never guessed: a cluster of which only one
// node is given looks like a single server.
type topology int

const (
	single topology = iota
	socket
	cluster
	sentinel
)

// address is the parsed form of what Connect accepts.
type address struct {
	scheme   string // as given, lower case
	topology topology
	tls      bool

	hosts              []string // host:port each, or the path of a socket
	username, password string   // of Redis; never of a sentinel
	db                 int

	master                             string // the name under which sentinels know the master
	sentinelUsername, sentinelPassword string
}

type schemeRule struct {
	topology topology
	tls      bool
}

var schemes = map[string]schemeRule{
	"redis":           {single, false},
	"rediss":          {single, true},
	"valkey":          {single, false},
	"valkeys":         {single, true},
	"unix":            {socket, false},
	"redis-cluster":   {cluster, false},
	"rediss-cluster":  {cluster, true},
	"redis-sentinel":  {sentinel, false},
	"rediss-sentinel": {sentinel, true},
}

const (
	wantAddress = "host:port or a URL that begins with redis://, rediss://, unix://, redis-cluster:// or redis-sentinel://"
	wantEscaped = "%2F for / and %3F for ? and %23 for # in a password, and %40 for an @ that is not in front of the host"
	redisPort   = "6379"
	mute        = "***"
)

// refuse builds every error of this file. Callers never hand it what may be part of a password: nothing from in front of
// an @, no port that is not one, no value of an option.
func refuse(want, found string) error {
	return &document.Error{Field: "redis address", Want: want, Found: found}
}

// parseAddress reads any form of address that Connect documents. It does not use url.Parse, whose errors repeat the
// password and which knows neither several hosts nor sockets.
func parseAddress(text string) (address, error) {
	scheme, rest, err := splitScheme(strings.TrimSpace(text))
	if err != nil {
		return address{}, err
	}
	rule := schemes[scheme]
	a := address{scheme: scheme, topology: rule.topology, tls: rule.tls}
	authority, path, query, err := splitParts(rest)
	if err != nil {
		return address{}, err
	}
	authority, err = a.takeCredentials(authority)
	if err != nil {
		return address{}, err
	}
	return a.parse(authority, path, query)
}

func (a address) parse(authority, path, query string) (address, error) {
	if err := a.parseHosts(authority); err != nil {
		return address{}, err
	}
	if err := a.parsePath(path); err != nil {
		return address{}, err
	}
	if err := a.parseQuery(query); err != nil {
		return address{}, err
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
func (a *address) takeCredentials(authority string) (hosts string, err error) {
	at := strings.LastIndex(authority, "@")
	if at < 0 {
		return authority, nil
	}
	username, password, ok := strings.Cut(authority[:at], ":")
	if !ok || password == "" {
		return "", refuse("user:password or :password in front of the @", "no password")
	}
	if a.username, err = url.PathUnescape(username); err != nil {
		return "", refuse("%25 for a % in the user", "a % without two hex digits")
	}
	if a.password, err = url.PathUnescape(password); err != nil {
		return "", refuse("%25 for a % in the password", "a % without two hex digits")
	}
	return authority[at+1:], nil
}

func (a *address) parseHosts(text string) error {
	if a.topology == socket {
		if text != "" {
			return refuse("unix:///path/of/the/socket", "a host")
		}
		return nil
	}
	for host := range strings.SplitSeq(text, ",") {
		hostPort, err := a.parseHost(host)
		if err != nil {
			return err
		}
		a.hosts = append(a.hosts, hostPort)
	}
	if a.topology == single && len(a.hosts) > 1 {
		return refuse("one host, or redis-cluster:// or redis-sentinel://", strconv.Itoa(len(a.hosts))+" hosts")
	}
	return nil
}

var (
	hostPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(:.*)?$`)
	portPattern = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
)

// parseHost returns host:port, with the usual port when none is given.
func (a *address) parseHost(text string) (string, error) {
	parts := hostPattern.FindStringSubmatch(text)
	switch {
	case parts == nil:
		return "", refuse("a host of letters, digits, dots and dashes, or an IPv6 address in brackets", "other characters")
	case parts[1] == "":
		return "", refuse("a host", "none")
	case strings.HasPrefix(parts[1], "[") && !isIPv6(parts[1]):
		return "", refuse("an IPv6 address in the brackets", strconv.Quote(parts[1]))
	case parts[2] == "":
		return parts[1] + ":" + a.usualPort(), nil
	}
	if !isPort(parts[2][1:]) {
		return "", refuse("a port from 1 to 65535 behind "+strconv.Quote(parts[1]), "another text")
	}
	return text, nil
}

func (a *address) usualPort() string {
	if a.topology == sentinel {
		return "26379"
	}
	return redisPort
}

func isIPv6(bracketed string) bool {
	ip, err := netip.ParseAddr(strings.Trim(bracketed, "[]"))
	return err == nil && ip.Is6()
}

func isPort(text string) bool {
	number, err := strconv.Atoi(text)
	return portPattern.MatchString(text) && err == nil && number <= 65535
}

func (a *address) parsePath(path string) error {
	path, err := url.PathUnescape(path)
	if err != nil {
		return refuse("%25 for a % in the path", "a % without two hex digits")
	}
	switch a.topology {
	case socket:
		return a.setSocket(path)
	case sentinel:
		return a.setMaster(strings.TrimPrefix(path, "/"))
	case cluster:
		return a.setClusterDB(strings.TrimPrefix(path, "/"))
	default:
		return a.setDB(strings.TrimPrefix(path, "/"))
	}
}

func (a *address) setSocket(path string) error {
	if len(path) < 2 {
		return refuse("unix:///path/of/the/socket", "no path")
	}
	a.hosts = []string{path}
	return nil
}

// setMaster reads "mymaster" or "mymaster/2".
func (a *address) setMaster(path string) error {
	master, db, _ := strings.Cut(path, "/")
	if master == "" {
		return refuse("the name of the master behind the sentinels, as in /mymaster", "none")
	}
	a.master = master
	return a.setDB(db)
}

func (a *address) setClusterDB(text string) error {
	if text != "" && text != "0" {
		return refuse("no database, for a cluster has only one", document.Found(text))
	}
	return nil
}

var dbPattern = regexp.MustCompile(`^[0-9]{1,6}$`)

func (a *address) setDB(text string) error {
	if text == "" {
		return nil
	}
	if !dbPattern.MatchString(text) {
		return refuse("the number of a database as in /2", document.Found(text))
	}
	var err error
	a.db, err = strconv.Atoi(text)
	return err
}

func (a *address) parseQuery(query string) error {
	seen := map[string]bool{}
	for option := range strings.SplitSeq(query, "&") {
		if option == "" {
			continue
		}
		name, value, _ := strings.Cut(option, "=")
		if seen[name] {
			return refuse("every option once", a.foundOption(name)+" twice")
		}
		seen[name] = true
		if err := a.setOption(name, value); err != nil {
			return err
		}
	}
	return nil
}

// setOption unescapes as in a path: in a password a + is a plus, not a space.
func (a *address) setOption(name, value string) error {
	value, err := url.PathUnescape(value)
	if err != nil {
		return refuse("%25 for a % in an option", "a % without two hex digits in "+a.foundOption(name))
	}
	switch {
	case a.topology == socket && name == "db":
		return a.setDB(value)
	case a.topology == sentinel && name == "sentinel_username":
		a.sentinelUsername = value
	case a.topology == sentinel && name == "sentinel_password":
		a.sentinelPassword = value
	default:
		return refuse(a.wantOption(), a.foundOption(name))
	}
	return nil
}

// foundOption does not show what may be the rest of a password with an & in it.
func (a *address) foundOption(name string) string {
	if a.sentinelPassword != "" {
		return "an option behind sentinel_password, or an & in it that is not written %26"
	}
	return "option " + document.Found(name)
}

func (a *address) wantOption() string {
	switch a.topology {
	case socket:
		return "no option of " + a.scheme + ":// but db"
	case sentinel:
		return "no options of " + a.scheme + ":// but sentinel_username and sentinel_password"
	default:
		return "no option of " + a.scheme + "://"
	}
}

// Redacted returns an address as it may be shown to people and written to logs: without passwords. Of an address that
// cannot be parsed it shows no more than the scheme, because nobody can tell where the password stands.
func Redacted(text string) string {
	a, err := parseAddress(text)
	if err == nil {
		return a.String()
	}
	if scheme, _, err := splitScheme(strings.TrimSpace(text)); err == nil {
		return scheme + "://" + mute
	}
	return mute
}

// String renders the address without its passwords.
func (a address) String() string {
	text := a.scheme + "://"
	if a.password != "" {
		text += escape(a.username) + ":" + mute + "@"
	}
	if a.topology == socket {
		return text + strings.ReplaceAll(escape(a.hosts[0]), "%2F", "/") + a.dbMark("?db=")
	}
	text += strings.Join(a.hosts, ",")
	if a.master != "" {
		text += "/" + escape(a.master)
	}
	return text + a.dbMark("/")
}

func (a address) dbMark(mark string) string {
	if a.db == 0 {
		return ""
	}
	return mark + strconv.Itoa(a.db)
}

// escape writes a space as %20, which QueryEscape does not, and an @ as %40, which PathEscape does not.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
