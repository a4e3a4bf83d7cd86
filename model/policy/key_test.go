package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func keyOf(t testing.TB, text string) Key {
	t.Helper()
	key, err := ParseKey(text)
	must(t, err)
	return key
}

func TestAKeyIsReadAndWrittenInItsCanonicalForm(t *testing.T) {
	for text, want := range map[string]struct {
		key  Key
		form string
		name string
	}{
		"{host(input_url)}":      {Key{KeyHost, "input_url"}, "{host(input_url)}", "host"},
		" { host( input_url ) }": {Key{KeyHost, "input_url"}, "{host(input_url)}", "host"},
		"{label.tenant}":         {Key{KeyLabel, "tenant"}, "{label.tenant}", "tenant"},
		"{label.a.b-c_1}":        {Key{KeyLabel, "a.b-c_1"}, "{label.a.b-c_1}", "a.b-c_1"},
		"{input_format}":         {Key{keyField, "input_format"}, "{input_format}", "input_format"},
		"{Account-ID}":           {Key{keyField, "Account-ID"}, "{Account-ID}", "Account-ID"},
		"{host}":                 {Key{keyField, "host"}, "{host}", "host"}, "{policy}": {Key{Kind: KeyPolicy}, "{policy}", "policy"},
	} {
		key := keyOf(t, text)
		failIf(t, key != want.key || key.String() != want.form || key.Name() != want.name,
			"%q is read as %+v, written %s, called %s", text, key, key, key.Name())
		again := keyOf(t, key.String())
		failIf(t, again != key, "%s is read back as %+v", key, again)
	}
}

func TestWhatIsNoKeyIsRefusedWithTheNearestOne(t *testing.T) {
	const want = "expected one of {host(FIELD)}, {label.NAME}, {FIELD} and {policy}, with a FIELD of the payload, found "
	for text, found := range map[string]string{
		"": `""`, "input_url": `"input_url"`,
		"host(input_url)":    `"host(input_url)"; nearest: {host(input_url)}`,
		"label.tenant":       `"label.tenant"; nearest: {label.tenant}`,
		"{{label.tenant}}":   `"{{label.tenant}}"; nearest: {label.tenant}`,
		"{hosts(input_url)}": `"{hosts(input_url)}"; nearest: {host(input_url)}`,
		"{Host(input_url)}":  `"{Host(input_url)}"; nearest: {host(input_url)}`,
		"{labels.tenant}":    `"{labels.tenant}"; nearest: {label.tenant}`,
		"${label.tenant}":    `"${label.tenant}"; nearest: {label.tenant}`,
		"policy":             `"policy"; nearest: {policy}`, "{path(input_url)}": `"{path(input_url)}"`,
		"{label.Tenant}":           `"{label.Tenant}"`,
		"{source.url}":             `"{source.url}"`,
		"{host(a)}-{label.tenant}": `"{host(a)}-{label.tenant}"`, "{a}{b}": `"{a}{b}"`, "{host()}": `"{host()}"`,
		"x{a}":                              `"x{a}"`,
		"{}":                                `"{}"`,
		"{ünder}":                           `"{ünder}"`,
		"{" + strings.Repeat("x", 65) + "}": `"{` + strings.Repeat("x", 59) + `"…`,
	} {
		_, err := ParseKey(text)
		failIf(t, err == nil || err.Error() != want+found, "%s:\n got %v\nwant %s", text, err, want+found)
	}
}

func TestAKeyOfAModelNamesWhatItCountsBy(t *testing.T) {
	const payload = `{"a":[1,{"kind":"inner"},"]}"],"account":17,"b":true,"big":1e+21,"escaped":"a\"b\\","kind":"feed","n":null,` +
		`"nested":{"kind":"deep"},"input_url":"https://Feeds.Example.com/x?y={","z":""}`
	labels := map[string]string{"tenant": "t1", "team": "a/b@c"}
	for template, want := range map[string]string{
		"{host(input_url)}": "host=feeds.example.com", "{host(account)}": "", "{host(missing)}": "", "{label.tenant}": "tenant=t1",
		"{host(kind)}": "",
		"{label.team}": "team=a/b@c",
		"{label.none}": "",
		"{kind}":       "kind=feed", "{account}": "account=17", "{escaped}": "escaped=a~" + sumOf(`a"b\`),
		"{big}": "big=1e+21",
		"{a}":   "", "{b}": "", "{n}": "", "{nested}": "", "{z}": "", "{missing}": "",
		"{policy}": "policy=twice-daily",
	} {
		got := keyOf(t, template).Of(payload, labels, "twice-daily")
		failIf(t, got != want, "%s gives %q, want %q", template, got, want)
	}
	got := keyOf(t, "{policy}").Of("{}", nil, "")
	failIf(t, got != "", "no policy gives %q", got)
	got = keyOf(t, "{label.x}").Of("{}", nil, "")
	failIf(t, got != "", "no labels give %q", got)
}

// sumOf is the text behind the ~ of a value that is no plain one.
func sumOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:6])
}

func TestAHostIsWrittenInOneWay(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.com/feed.xml":      "example.com",
		"HTTPS://EXAMPLE.com:8443/feed.xml": "example.com",
		"https://example.com./x":            "example.com", "https://user:p%40ss@example.com/": "example.com",
		"https://example.com.:80":          "example.com",
		"https://a@b@example.com/":         "example.com",
		"http://example.com#@evil.example": "example.com", " https://example.com ": "example.com", "<https://example.com>": "example.com", "\u200b“https://example.com”\\n": "example.com", "//example.com/x": "example.com",
		"http://example.com?@evil.example": "example.com",
		"ftp://files.example.com/x":        "files.example.com",
		"s3://bucket/key":                  "bucket",
		"http://192.0.2.7:80/":             "192.0.2.7",
		"http://[2001:DB8:0::1]:8080/":     "2001:db8::1", "http://[::ffff:192.0.2.7]/": "192.0.2.7", "http://München.de/": "münchen.de",
		"http://[2001:db8::1]/":     "2001:db8::1",
		"http://xn--mnchen-3ya.de/": "xn--mnchen-3ya.de",
		"http://a_b.example.com/":   "a_b.example.com",
		"example.com/feed":          "", "mailto:a@example.com": "", "http://": "", "http://example.com\r\nX: y/": "", "": "",
		"https://a.example/100%zz": "a.example", "https://a.example?q=%zz": "a.example", "https://a.example#%zz": "a.example",
		"http://:80/":              "",
		"http://./":                "",
		"http:///path":             "",
		"http://[::1/":             "",
		"http://exa mple.com/":     "",
		"http://example.com:port/": "",
	} {
		got := hostOf(url)
		failIf(t, got != want, "%q: host %q, want %q", url, got, want)
	}
}

func TestAValueThatIsNoPlainOneHasAStableShortForm(t *testing.T) {
	for value, want := range map[string]string{
		"t1":                     "t1",
		"Az09_.:/@+-":            "Az09_.:/@+-",
		strings.Repeat("x", 100): strings.Repeat("x", 100),
		strings.Repeat("x", 101): strings.Repeat("x", 40) + "~" + sumOf(strings.Repeat("x", 101)),
		"münchen.de":             "m~6fb6d0c86af6", "a:b:limit:c = d": "a:b:limit:c~", "a~b": "a~", "line\nfeed": "line~", "\xff": "~",
		"{x}": "~",
		"a=b": "a~",
	} {
		got := keyValue(value)
		begin, sum, short := strings.Cut(want, "~")
		failIf(t, got != want && (!short || sum != "" || !strings.HasPrefix(got, begin+"~") || len(got) != len(begin)+13),
			"%q: %q, want %q", value, got, want)
	}
	failIf(t, keyValue("a=b") == keyValue("a=c"), "two values have one short form")
}

var harmless = regexp.MustCompile(`^[a-z_A-Z]+=(?:[A-Za-z0-9_.:/@+-]{1,100}|[A-Za-z0-9_.:/@+-]{0,40}~[0-9a-f]{12})$`)

// FuzzKeyOf: whatever a payload holds, its key is empty or one of few characters, and finds the value that encoding/json finds.
func FuzzKeyOf(f *testing.F) {
	for _, payload := range []string{
		`{}`, `{"input_url":"https://EXAMPLE.com:1/"}`, `{"a":{"input_url":"x"},"input_url":-1.5e3}`, `{"input_url":"a\u0062\n"}`, `{"a":"\\\"","input_url":"[::1]"}`,
		`{"a":[[],{},"}"],"input_url":"x"}`, `{:1}`, `{"input_url"`, `{"input_url":}`, `[1]`, `"input_url":"x"`, `{"input_url":"//ü"}`, `{"A":0,"input_url":"//[fe80::1%25eth0]"}`,
	} {
		f.Add(payload)
	}
	field, host := Key{keyField, "input_url"}, Key{KeyHost, "input_url"}
	f.Fuzz(func(t *testing.T, payload string) {
		for _, key := range []Key{field, host} {
			got := key.Of(payload, nil, "")
			stopIf(t, got != "" && !harmless.MatchString(got), "%q: %s gives %q", payload, key, got)
		}
		var fields map[string]json.RawMessage
		if !utf8.ValidString(payload) || json.Unmarshal([]byte(payload), &fields) != nil || fields == nil {
			return
		}
		canonical, err := json.Marshal(fields)
		if err != nil {
			return
		}
		want := ""
		if raw := string(fields["input_url"]); raw != "" && raw[0] == '"' {
			_ = json.Unmarshal(fields["input_url"], &want)
		} else if raw != "" && strings.Trim(raw, "-0123456789.eE+") == "" {
			want = raw
		}
		got := scalarField(string(canonical), "input_url")
		stopIf(t, got != want, "%s: found %q, want %q", canonical, got, want)
	})
}

func TestAKeyOfAPlainPayloadTakesLittleMemory(t *testing.T) {
	payload := `{"a":"` + strings.Repeat("x", 1000) + `","input_url":"https://example.com/feed.xml","z":1}`
	key := Key{keyField, "z"}
	allocations := testing.AllocsPerRun(100, func() { key.Of(payload, nil, "") })
	failIf(t, allocations > 1, "%.0f allocations, want the key alone", allocations)
}

func TestANameInAKeyHasItsLength(t *testing.T) {
	name := strings.Repeat("a", 64)
	for text, good := range map[string]bool{
		"{" + name + "}": true, "{" + name + "a}": false, "{host(" + name + ")}": true, "{host(" + name + "a)}": false,
		"{label." + name[:32] + "}": true, "{label." + name[:33] + "}": false, "{0a}": false, "{label.A}": false,
	} {
		_, err := ParseKey(text)
		failIf(t, err == nil != good, "%s: %v", text, err)
	}
}
