package redisurl

import (
	"net/url"
	"strconv"
	"strings"
)

// Redacted returns an address as it may be shown to people and written to logs: without passwords. Of an address that
// cannot be parsed it shows no more than the scheme, because nobody can tell where the password stands.
func Redacted(text string) string {
	a, err := Parse(text)
	if err == nil {
		return a.String()
	}
	if scheme, _, err := splitScheme(strings.TrimSpace(text)); err == nil {
		return scheme + "://" + mute
	}
	return mute
}

// String renders the address without its passwords.
func (a Address) String() string {
	text := a.Scheme + "://"
	if a.Password != "" {
		text += escape(a.Username) + ":" + mute + "@"
	}
	if a.Topology == Socket {
		return text + strings.ReplaceAll(escape(a.Hosts[0]), "%2F", "/") + a.dbMark("?db=")
	}
	text += strings.Join(a.Hosts, ",")
	if a.Master != "" {
		text += "/" + escape(a.Master)
	}
	return text + a.dbMark("/")
}

// Counterpart is the beginning of the same address with TLS where it has none, and without where it has.
func (a Address) Counterpart() string {
	name, rest, _ := strings.Cut(a.Scheme, "-")
	if plain, secure := strings.CutSuffix(name, "s"); secure && a.TLS {
		name = plain
	} else {
		name += "s"
	}
	if rest != "" {
		name += "-" + rest
	}
	return name + "://"
}

func (a Address) dbMark(mark string) string {
	if a.DB == 0 {
		return ""
	}
	return mark + strconv.Itoa(a.DB)
}

// escape writes a space as %20, which QueryEscape does not, and an @ as %40, which PathEscape does not.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }
