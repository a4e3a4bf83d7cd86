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

var (
	hostPattern = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(:.*)?$`)
	portPattern = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
)

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
	case parts[2] == "":
		return parts[1] + ":" + a.usualPort(), nil
	}
	if !isPort(parts[2][1:]) {
		return "", refuse("a port from 1 to 65535 behind "+strconv.Quote(parts[1]), "another text")
	}
	return text, nil
}

func (a *Address) usualPort() string {
	if a.Topology == Sentinel {
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
