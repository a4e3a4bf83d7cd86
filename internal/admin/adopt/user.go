package adopt

import (
	"slices"
	"strings"
)

// begun is a line of a crontab without a user, with the words of its command.
type begun struct {
	*job

	words []string
}

var (
	// surelyUsers are the names of no program.
	surelyUsers = []string{"root", "www-data", "nobody", "daemon", "apache", "postgres", "ubuntu", "smmsp"}
	usualUsers  = append([]string{
		"adm", "backup", "bin", "caddy", "ftp", "games", "git", "gitlab", "http", "irc", "jenkins", "list", "lp", "mail", "man", "memcache", "mongodb",
		"munin", "mysql", "nagios", "news", "nginx", "operator", "prometheus", "proxy", "rabbitmq", "redis", "sync", "sys", "tomcat", "uucp", "zabbix",
	}, surelyUsers...)
)

func (b begun) is(user ...string) bool { return len(b.words) > 1 && slices.Contains(user, b.words[0]) }

// runs reports whether a command seems to begin at the second word.
func (b begun) runs() bool {
	return len(b.words) > 1 && !slices.Contains(guards, b.words[0]) && slices.Contains([]string{"[", "test", "if", "command"}, b.words[1])
}

// noteUsers asks for --system: once if each line seems to begin with a user, or else of each line that does so beyond doubt.
func (c *crontab) noteUsers() {
	names, all, sure := []string{}, true, false
	for _, line := range c.lines {
		all = all && line.is(append(c.options.Users, usualUsers...)...) && line.words[1][0] != '-'
		sure = sure || line.is(surelyUsers...) || line.runs() || len(line.words) > 1 && line.words[1][0] == '/'
		if !slices.Contains(names, line.words[0]) {
			names = append(names, line.words[0])
		}
	}
	if len(c.lines) > 1 && all && sure {
		c.note(c.lines[0].line, Differs, "each line begins with what may be a user, and is run as a program here (%s): if these are users, add --system",
			strings.Join(names[:min(len(names), 5)], ", "))
		return
	}
	for _, line := range c.lines {
		if line.is(surelyUsers...) || line.runs() {
			line.note(Differs, "it begins with %s: if that is a user, add --system", line.words[0])
		}
	}
}
