package redisurl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/document"
)

var failIf = check.FailIf

func TestEveryFormOfAddressIsUnderstood(t *testing.T) {
	tests := map[string]Address{
		"localhost:6379":              {Scheme: "redis", Hosts: []string{"localhost:6379"}},
		"10.0.0.7:1/3":                {Scheme: "redis", Hosts: []string{"10.0.0.7:1"}, DB: 3},
		":pw@h:1":                     {Scheme: "redis", Hosts: []string{"h:1"}, Password: "pw"},
		"redis://h":                   {Scheme: "redis", Hosts: []string{"h:6379"}},
		"redis://h/":                  {Scheme: "redis", Hosts: []string{"h:6379"}},
		"redis://h?db=3":              {Scheme: "redis", Hosts: []string{"h:6379"}, DB: 3},
		"redis://h/3?db=3":            {Scheme: "redis", Hosts: []string{"h:6379"}, DB: 3},
		"redis-sentinel://h/m?db=3":   {Scheme: "redis-sentinel", Topology: Sentinel, Hosts: []string{"h:26379"}, Master: "m", DB: 3},
		"redis://h?":                  {Scheme: "redis", Hosts: []string{"h:6379"}},
		" redis://h:1\n":              {Scheme: "redis", Hosts: []string{"h:1"}},
		"REDIS://h:1":                 {Scheme: "redis", Hosts: []string{"h:1"}},
		"redis://my_redis-1:65535/15": {Scheme: "redis", Hosts: []string{"my_redis-1:65535"}, DB: 15},
		"redis://[::1]":               {Scheme: "redis", Hosts: []string{"[::1]:6379"}},
		"redis://[2001:db8::1]:7/1":   {Scheme: "redis", Hosts: []string{"[2001:db8::1]:7"}, DB: 1},
		"redis://app:pw@h:1/2":        {Scheme: "redis", Hosts: []string{"h:1"}, Username: "app", Password: "pw", DB: 2},
		"rediss://h":                  {Scheme: "rediss", TLS: true, Hosts: []string{"h:6379"}},
		"valkey://h":                  {Scheme: "valkey", Hosts: []string{"h:6379"}},
		"valkeys://:pw@h:1":           {Scheme: "valkeys", TLS: true, Hosts: []string{"h:1"}, Password: "pw"},

		"redis://a%3Ab:p%40%2F%3F%23%25+%20w@h": {
			Scheme: "redis", Hosts: []string{"h:6379"}, Username: "a:b", Password: "p@/?#%+ w",
		},
		"redis://:p@s:s@h": {Scheme: "redis", Hosts: []string{"h:6379"}, Password: "p@s:s"},

		"unix:///run/redis.sock":               {Scheme: "unix", Topology: Socket, Hosts: []string{"/run/redis.sock"}},
		"unix:///run/redis.sock?db=4":          {Scheme: "unix", Topology: Socket, Hosts: []string{"/run/redis.sock"}, DB: 4},
		"unix://app:pw@/run/a%20b%40c%3F.sock": {Scheme: "unix", Topology: Socket, Hosts: []string{"/run/a b@c?.sock"}, Username: "app", Password: "pw"},

		"redis-cluster://h":                 {Scheme: "redis-cluster", Topology: Cluster, Hosts: []string{"h:6379"}},
		"redis-cluster://:pw@h1:1,h2,h3:3/": {Scheme: "redis-cluster", Topology: Cluster, Hosts: []string{"h1:1", "h2:6379", "h3:3"}, Password: "pw"},
		"rediss-cluster://h1:1,[::1]:2/0":   {Scheme: "rediss-cluster", Topology: Cluster, TLS: true, Hosts: []string{"h1:1", "[::1]:2"}},

		"redis-sentinel://h/mymaster": {Scheme: "redis-sentinel", Topology: Sentinel, Hosts: []string{"h:26379"}, Master: "mymaster"},
		"redis-sentinel://app:pw@h1:1,h2/my%20master/2?sentinel_username=watch&sentinel_password=a+b%26%40": {
			Scheme: "redis-sentinel", Topology: Sentinel, Hosts: []string{"h1:1", "h2:26379"}, Master: "my master", DB: 2,
			Username: "app", Password: "pw", SentinelUsername: "watch", SentinelPassword: "a+b&@",
		},
		"redis-sentinel://h/m?&sentinel_username=u&&sentinel_password=p&": {
			Scheme: "redis-sentinel", Topology: Sentinel, Hosts: []string{"h:26379"}, Master: "m", SentinelUsername: "u", SentinelPassword: "p",
		},
		"rediss-sentinel://h:1/m/0": {Scheme: "rediss-sentinel", Topology: Sentinel, TLS: true, Hosts: []string{"h:1"}, Master: "m"},
	}
	for text, want := range tests {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestEveryOtherAddressIsRefusedWithWhatWasExpected(t *testing.T) {
	const begin = "host:port or a URL that begins with redis://, rediss://, unix://, redis-cluster:// or redis-sentinel://, found "
	tests := map[string]string{
		"":                        begin + `nothing`,
		"localhost":               begin + `a text without port`,
		"/run/redis.sock":         begin + `another beginning`,
		"http://h:1":              begin + `"http://"`,
		"redis+tls://h:1":         begin + `"redis+tls://"`,
		":x://h":                  begin + `another beginning`,
		"redis://":                `a host, found none`,
		"redis://:1":              `a host, found none`,
		"redis:///2":              `a host, found none`,
		"redis://h1,h2:2":         `one host, or redis-cluster:// or redis-sentinel://, found 2 hosts`,
		"redis://h h":             `a host of letters, digits, dots and dashes, or an IPv6 address in brackets, found other characters`,
		"redis://::1":             `a host, found none`,
		"redis://[1.2.3.4]":       `an IPv6 address in the brackets, found "[1.2.3.4]"`,
		"redis://h:":              `a port from 1 to 65535 behind "h", found another text`,
		"redis://h:0":             `a port from 1 to 65535 behind "h", found another text`,
		"redis://h:65536":         `a port from 1 to 65535 behind "h", found another text`,
		"redis://h:+80":           `a port from 1 to 65535 behind "h", found another text`,
		"redis://h/one":           `the number of a database as in /2, found "one"`,
		"redis://h/-1":            `the number of a database as in /2, found "-1"`,
		"redis://h/1/2":           `the number of a database as in /2, found "1/2"`,
		"redis://h/%zz":           `%25 for a % in the path, found a % without two hex digits`,
		"redis://h#1":             `no fragment, found a #`,
		"redis://h?db=one":        `the number of a database as in /2, found "one"`,
		"redis://h/1?db=2":        `one database, in the path or as option db, found 1 and 2`,
		"redis://h?pool_size=9&x": `no option of redis:// but db, found option "pool_size"`,
		"redis://app@h":           `user:password or :password in front of the @, found no password`,
		"redis://app:@h":          `user:password or :password in front of the @, found no password`,
		"redis://@h":              `user:password or :password in front of the @, found no password`,
		"redis://:%z@h":           `%25 for a % in the password, found a % without two hex digits`,
		"redis://%z:p@h":          `%25 for a % in the user, found a % without two hex digits`,
		"redis://:a/b@h":          wantEscaped + `, found one of / ? # in front of an @`,
		"redis://:a#b@h":          wantEscaped + `, found one of / ? # in front of an @`,

		"unix://run/redis.sock":    `unix:///path/of/the/socket, found a host`,
		"unix://":                  `unix:///path/of/the/socket, found no path`,
		"unix:///":                 `unix:///path/of/the/socket, found no path`,
		"unix:///s?db=x":           `the number of a database as in /2, found "x"`,
		"unix:///s?db=1&db=2":      `every option once, found option "db" twice`,
		"unix:///s?name=x":         `no option of unix:// but db, found option "name"`,
		"redis-cluster://h1,,h2":   `a host, found none`,
		"redis-cluster://h/1":      `no database, for a cluster has only one, found "1"`,
		"redis-cluster://h?db=1":   `no option of redis-cluster://, found option "db"`,
		"redis-cluster://h?addr=x": `no option of redis-cluster://, found option "addr"`,

		"redis-sentinel://h":                        `the name of the master behind the sentinels, as in /mymaster, found none`,
		"redis-sentinel://h//1":                     `the name of the master behind the sentinels, as in /mymaster, found none`,
		"redis-sentinel://h/m/x":                    `the number of a database as in /2, found "x"`,
		"redis-sentinel://h/m?sentinel_password=%z": `%25 for a % in an option, found a % without two hex digits in option "sentinel_password"`,
		"redis-sentinel://h/m?password=x":           `no options of redis-sentinel:// but db, sentinel_username and sentinel_password, found option "password"`,
	}
	for text, want := range tests {
		_, err := Parse(text)
		failIf(t, err == nil || err.Error() != "redis address: expected "+want, "%q:\n got %v\nwant redis address: expected %s", text, err, want)
		field := (*document.Error)(nil)
		failIf(t, !errors.As(err, &field), "%q: expected a *document.Error, found %T", text, err)
	}
}

func TestNoErrorShowsAPieceOfASentinelPassword(t *testing.T) {
	for _, rest := range []string{"&hunter2", "&hunter2=1", "&hunter2=%zz", "&hunter2&hunter2", "#hunter2", "@hunter2", "%hunter2"} {
		_, err := Parse("redis-sentinel://h/m?sentinel_password=hunter2" + rest)
		failIf(t, err == nil || strings.Contains(err.Error(), "hunter2"),
			"sentinel_password=hunter2%s: got %v, want an error without the password", rest, err)
	}
}

func TestRedactedAddressKeepsAllButThePasswords(t *testing.T) {
	tests := map[string]string{
		"localhost:6379":               "redis://localhost:6379",
		"redis://h/2":                  "redis://h:6379/2",
		"rediss://:secret@h:1":         "rediss://:***@h:1",
		"redis://a%40b:secret@h:1/0":   "redis://a%40b:***@h:1",
		"unix:///run/a%20b.sock?db=3":  "unix:///run/a%20b.sock?db=3",
		"redis-cluster://u:secret@a,b": "redis-cluster://u:***@a:6379,b:6379",
		"redis-sentinel://u:secret@a,b/m/1?sentinel_password=secret": "redis-sentinel://u:***@a:26379,b:26379/m/1",

		"redis://:secret@h:1/x":   "redis://***", // cannot be parsed
		"redis://:sec/ret@h:1":    "redis://***",
		"redis://h?secret":        "redis://***",
		"postgres://u:secret@h:1": "***",
		"secret":                  "***",
	}
	for text, want := range tests {
		got := Redacted(text)
		failIf(t, got != want, "Redacted(%q): expected %q, found %q", text, got, want)
	}
}

// FuzzParse puts a password with arbitrary bytes in it between arbitrary neighbours.
func FuzzParse(f *testing.F) {
	const marker = "hunter2"
	f.Add("redis://app", "", "host:6379/2")
	f.Add("redis://", "/?#%", "host:port")
	f.Add("rediss://app", "://", "h?unknown=1")
	f.Add("app", "@[::1]:x/", "h1,h2")
	f.Add("unix://", "%zz", "/run/redis.sock?db=x")
	f.Add("redis-cluster://a:b", ",", "h1,,h2/1")
	f.Add("redis-sentinel://a/", "?sentinel_password=", "h1,h2/mymaster/1?sentinel_password=p")
	f.Fuzz(func(t *testing.T, before, middle, after string) {
		if strings.Contains(strings.ToLower(before+after), marker) {
			t.Skip("the marker stands outside the password too")
		}
		text := before + ":" + marker + middle + marker + "@" + after
		_, err := Parse(text)
		failIf(t, err != nil && strings.Contains(strings.ToLower(err.Error()), marker), "%q: the error shows the Password: %v", text, err)
		redacted := Redacted(text)
		failIf(t, strings.Contains(strings.ToLower(redacted), marker), "%q: Redacted shows the Password: %s", text, redacted)
		again := Redacted(redacted)
		failIf(t, again != redacted, "%q: Redacted gives %q, and of that %q", text, redacted, again)
	})
}

func TestTheCounterpartOfAnAddressSpeaksTheOtherWay(t *testing.T) {
	for text, want := range map[string]string{
		"redis://h": "rediss://", "rediss://h": "redis://", "valkey://h": "valkeys://", "valkeys://h": "valkey://",
		"redis-cluster://h": "rediss-cluster://", "rediss-sentinel://h/m": "redis-sentinel://",
	} {
		a, err := Parse(text)
		got := a.Counterpart()
		failIf(t, err != nil || got != want, "%s: want %s, got %s (%v)", text, want, got, err)
	}
}
