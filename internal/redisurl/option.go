package redisurl

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

func (a *Address) parsePath(path string) error {
	path, err := url.PathUnescape(path)
	if err != nil {
		return refuse("%25 for a % in the path", "a % without two hex digits")
	}
	switch a.Topology {
	case Socket:
		return a.setSocket(path)
	case Sentinel:
		return a.setMaster(strings.TrimPrefix(path, "/"))
	case Cluster:
		return a.setClusterDB(strings.TrimPrefix(path, "/"))
	default:
		return a.setDB(strings.TrimPrefix(path, "/"))
	}
}

func (a *Address) setSocket(path string) error {
	if len(path) < 2 {
		return refuse("unix:///path/of/the/socket", "no path")
	}
	a.Hosts = []string{path}
	return nil
}

// setMaster reads "mymaster" or "mymaster/2".
func (a *Address) setMaster(path string) error {
	master, db, _ := strings.Cut(path, "/")
	if master == "" {
		return refuse("the name of the master behind the sentinels, as in /mymaster", "none")
	}
	a.Master = master
	return a.setDB(db)
}

func (a *Address) setClusterDB(text string) error {
	if text != "" && text != "0" {
		return refuse("no database, for a cluster has only one", document.Found(text))
	}
	return nil
}

var dbPattern = regexp.MustCompile(`^[0-9]{1,6}$`)

func (a *Address) setDB(text string) error {
	if text == "" {
		return nil
	}
	if !dbPattern.MatchString(text) {
		return refuse("the number of a database as in /2", document.Found(text))
	}
	var err error
	a.DB, err = strconv.Atoi(text)
	return err
}

func (a *Address) parseQuery(query string) error {
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
func (a *Address) setOption(name, value string) error {
	value, err := url.PathUnescape(value)
	if err != nil {
		return refuse("%25 for a % in an option", "a % without two hex digits in "+a.foundOption(name))
	}
	switch {
	case a.Topology == Socket && name == "db":
		return a.setDB(value)
	case a.Topology == Sentinel && name == "sentinel_username":
		a.SentinelUsername = value
	case a.Topology == Sentinel && name == "sentinel_password":
		a.SentinelPassword = value
	default:
		return refuse(a.wantOption(), a.foundOption(name))
	}
	return nil
}

// foundOption does not show what may be the rest of a password with an & in it.
func (a *Address) foundOption(name string) string {
	if a.SentinelPassword != "" {
		return "an option behind sentinel_password, or an & in it that is not written %26"
	}
	return "option " + document.Found(name)
}

func (a *Address) wantOption() string {
	switch a.Topology {
	case Socket:
		return "no option of " + a.Scheme + ":// but db"
	case Sentinel:
		return "no options of " + a.Scheme + ":// but sentinel_username and sentinel_password"
	default:
		return "no option of " + a.Scheme + "://"
	}
}
