package redisurl

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

func (a *Address) parseHosts(text string) error {
	if a.Topology == Socket {
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
		a.Hosts = append(a.Hosts, hostPort)
	}
	if a.Topology == Single && len(a.Hosts) > 1 {
		return refuse("one host, or redis-cluster:// or redis-sentinel://", strconv.Itoa(len(a.Hosts))+" hosts")
	}
	return nil
}

var hostPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(:.*)?$`)

// parseHost returns host:port, with the usual port when none is given.
func (a *Address) parseHost(text string) (string, error) {
	parts := hostPattern.FindStringSubmatch(text)
	switch {
	case parts == nil:
		return "", refuse("a host of letters, digits, dots and dashes, or an IPv6 address in brackets", "other characters")
	case parts[1] == "":
		return "", refuse("a host", "none")
	case strings.HasPrefix(parts[1], "[") && !isIPv6(parts[1]):
		return "", refuse("an IPv6 address in the brackets", strconv.Quote(parts[1]))
	case parts[2] == "" && a.Topology == Sentinel:
		return parts[1] + ":26379", nil
	case parts[2] == "":
		return parts[1] + ":6379", nil
	case !isPort(parts[2][1:]):
		return "", refuse("a port from 1 to 65535 behind "+strconv.Quote(parts[1]), "another text")
	}
	return text, nil
}

func isIPv6(bracketed string) bool {
	ip, err := netip.ParseAddr(strings.Trim(bracketed, "[]"))
	return err == nil && ip.Is6()
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil && text[0] != '0'
}
