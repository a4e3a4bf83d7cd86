package redisurl

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
)

func (a *Address) parsePath(path string) error {
	path, err := url.PathUnescape(path)
	if err != nil {
		return refuse("%25 for a % in the path", "a % without two hex digits")
	}
	db := strings.TrimPrefix(path, "/")
	switch a.Topology {
	case Socket:
		if len(path) < 2 {
			return refuse("unix:///path/of/the/socket", "no path")
		}
		a.Hosts = []string{path}
		return nil
	case Sentinel: // mymaster or mymaster/2
		if a.Master, db, _ = strings.Cut(db, "/"); a.Master == "" {
			return refuse("the name of the master behind the sentinels, as in /mymaster", "none")
		}
	case Cluster:
		if db != "" && db != "0" {
			return refuse("no database, for a cluster has only one", document.Found(db))
		}
	}
	return a.setDB(db)
}

func (a *Address) setDB(text string) error {
	if text == "" {
		return nil
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || len(text) > len("999999") {
		return refuse("the number of a database as in /2", document.Found(text))
	}
	a.DB = int(number)
	return nil
}

// setDBAgain reads the number of a database as an option, as other clients do. It may stand in the path too, but must be the same.
func (a *Address) setDBAgain(text string) error {
	inPath := a.DB
	err := a.setDB(text)
	if err == nil && inPath != 0 && a.DB != inPath {
		return refuse("one database, in the path or as option db", strconv.Itoa(inPath)+" and "+strconv.Itoa(a.DB))
	}
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
	case a.Topology != Cluster && name == "db":
		return a.setDBAgain(value)
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
	case Cluster:
		return "no option of " + a.Scheme + "://"
	case Sentinel:
		return "no options of " + a.Scheme + ":// but db, sentinel_username and sentinel_password"
	default:
		return "no option of " + a.Scheme + ":// but db"
	}
}
