package notifier

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sorted(texts []string) string {
	slices.Sort(texts)
	return fmt.Sprint(texts)
}

func TestAnErrorInAFileOfRoutesNamesLineAndFieldAndNoSecret(t *testing.T) {
	const routes, list = "\nroutes:\n- {events: [disabled], channels: [a]}", "channels: {a: {list: x}}\nroutes:\n- "
	check := func(text, want string) {
		t.Helper()
		_, err := Read("routes.yaml", strings.NewReader(text), secrets)
		failIf(t, err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "routes.yaml"),
			"%s\n got %v\nwant %s", text, err, want)
	}
	for text, want := range map[string]string{
		"": "expected one document, found 0", "[]": "expected one document, found 0",
		"channels: {}" + routes:                                                       "line 1: channels: expected an object with at least one channel",
		"channels:\n  A b: {list: x}" + routes:                                        "line 1: channels: expected names of 1-40 lower-case letters",
		"channels:\n  a:\n    list: x\n    colour: red" + routes:                      "line 4: channels.a.colour: expected one of webhook",
		"channels:\n  a:\n    webhook: ftp://s3cret@x\n" + routes:                     "line 3: channels.a.webhook: expected a URL with http or https",
		"channels:\n  a:\n    webhook: https://x\n    secret: whsec_s3cret" + routes:  "line 4: channels.a.secret: expected {env: NAME} or {file: PATH}, found something else",
		"channels:\n  a:\n    webhook: https://x\n    secret: {env: NONE}" + routes:   "line 4: channels.a.secret.env: expected a variable that is set",
		"channels:\n  a:\n    webhook: https://x\n    secret: {file: /none}" + routes: "line 4: channels.a.secret.file: expected a file with the secret",
		"channels: {a: {list: x}}":                                                    "routes: expected a list of at least one route",
		list + "{events: [circuit], channels: [a]}":                                   `line 3: routes[0].events: expected a list of circuit_closed, circuit_opened, disabled,`,
		list + "{channels: [a]}":                                                      "routes[0].events: expected a list of",
		list + "{events: [stale]}":                                                    "routes[0].channels: expected a list of a, found nothing",
		list + "{events: [stale], channels: [b]}":                                     `routes[0].channels: expected a list of a, found "b"`,
		list + "{events: [stale], channels: [a], models: tenant}":                     "line 3: routes[0].models.selector: expected terms",
		list + "{events: [stale, new_error], channels: [a], models: tenant=t1}":       `routes[0].models: expected only events that are about a model beside it, found "new_error"`,
		list + "{events: [stale], channels: [a], models: tenant=t1, queues: []}":      "routes[0].queues: expected one of events, channels, models, found an unknown field",
	} {
		check(text, want)
	}
	const mail = "email: 'x:25', from: a@b.c, "
	for channel, want := range map[string]string{ // and the field
		"": ": expected one of webhook, email and list, found none", "list: x, webhook: y": "expected one of webhook, email and list, found a second",
		"list: x, secret: {env: SECRET}": ".secret: expected it in a channel with webhook alone",
		"webhook: 'https://x'":           ".secret: expected {env: NAME} or {file: PATH} that holds whsec_",
		"list: x, gather: soon":          ".gather: expected a duration", "list: x, timeout: 2h": ".timeout: expected 1ms to 1m", "list: x, retries: {strategy: slow}": ".retries.strategy: expected",
		"list: x, digest: often": ".digest: expected {above: N, within: DURATION} or none", "list: x, digest: {above: 0}": ".digest.above: expected a whole number from 1 to 1000",
		"email: x, from: a@b.c, to: policy": ".email: expected the host and port", "email: 'x:25', to: policy": ".from: expected an e-mail address, found nothing",
		mail:              ".to: expected an e-mail address, {payload: FIELD}, {label: NAME} or policy",
		mail + "to: none": ".to: expected an e-mail address, {payload: FIELD}, {label: NAME} or policy", mail + "to: policy, tls: ssl": ".tls: expected starttls or tls or none",
		mail + "to: policy, user: ann": ".user: expected user and password together", mail + "to: policy, ca: /none": ".ca: expected a file of PEM certificates",
		mail + "to: policy, tls: none, user: ann, password: {env: PASSWORD}": "never without TLS",
	} {
		if strings.HasPrefix(want, ".") || strings.HasPrefix(want, ":") {
			want = "line 2: channels.a" + want
		}
		check("channels:\n  a: {"+channel+"}"+routes, want)
	}
}

// The example of docs/notifier.md stands between its first two fences of YAML.
func TestTheExampleOfTheDocumentIsReadWhole(t *testing.T) {
	text, err := os.ReadFile("../../../docs/notifier.md")
	must(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	example, _, ends := strings.Cut(rest, "```")
	stopIf(t, !found || !ends, "there is no example")
	password := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(password, []byte("p4ss\n"), 0o600))
	example = strings.NewReplacer("/run/secrets/smtp", password, "OPS_WEBHOOK_SECRET", "SECRET").Replace(example)
	routes, err := Read("docs/notifier.md", strings.NewReader(example), secrets)
	must(t, err)
	defer routes.Close()
	told := map[string]bool{}
	for _, r := range routes.routes {
		for _, event := range r.events {
			told[event] = true
		}
	}
	failIf(t, len(routes.channels) != 4 || len(told) != len(events),
		"want each kind of channel and each event shown, got %d and %v", len(routes.channels), told)
}
