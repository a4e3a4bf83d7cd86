package notifier

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Routes says which entries of the outbox go to which channels. It belongs to one process: Close ends it.
type Routes struct {
	channels map[string]*Channel
	routes   []route
}

// Channel is one way to reach people or programs.
type Channel struct {
	Name string

	list    string    // of Redis, for other programs; empty: it has a sender
	sender  sender    // nil: it has a list
	to      addressee // of e-mail
	gather  time.Duration
	digest  digest
	retries policy.Retries
	jitter  float64
	timeout time.Duration
	closed  atomic.Int64 // until when a server asked to be left alone, in Unix ms
}

type route struct {
	events   []string // sorted
	channels []string
	models   *model.Selector // nil: all entries, also those about no model
}

type addressee struct {
	recipient policy.Recipient
	byPolicy  bool // the policy of the model says it
}

// events are what a route may name, by whether they are about a model. They are those of the outbox.
var events = map[string]bool{
	string(policy.NoticeDisabled): true, string(policy.NoticeRecovered): true, string(policy.NoticeFailing): true,
	string(policy.NoticeStale): true, string(policy.NoticeFresh): true,
	"circuit_opened": false, "circuit_closed": false, "new_error": false,
}

// Secrets finds a secret to which a file of routes refers.
type Secrets func(name string) string

// Read reads a file of routes, in YAML or JSON. An error names the line and the field; it never holds a secret.
func Read(name string, in io.Reader, environment Secrets) (*Routes, error) {
	doc, err := definitions.ReadOne(name, in)
	if err != nil {
		return nil, err
	}
	r := &Routes{channels: make(map[string]*Channel)}
	if err := r.read(doc.Value, environment); err != nil {
		return nil, doc.At(err)
	}
	return r, nil
}

// Close ends idle connections.
func (r *Routes) Close() {
	for _, channel := range r.channels {
		if channel.sender != nil {
			channel.sender.close()
		}
	}
}

func (r *Routes) read(value any, environment Secrets) error {
	doc, err := document.ReadObject(value, "channels", "routes")
	if err != nil {
		return err
	}
	channels, _ := doc.Fields["channels"].(map[string]any)
	if len(channels) == 0 {
		return document.Refuse("channels", "an object with at least one channel", document.Found(doc.Fields["channels"]))
	}
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		if !channelName.MatchString(name) {
			return document.Refuse("channels", "names of "+channelCharacters, document.Found(name))
		}
		channel, err := readChannel(name, channels[name], environment)
		if err != nil {
			return document.Place(err, "channels."+name)
		}
		r.channels[name] = channel
	}
	routes, _ := doc.Fields["routes"].([]any)
	if len(routes) == 0 {
		return document.Refuse("routes", "a list of at least one route", document.Found(doc.Fields["routes"]))
	}
	for i, value := range routes {
		if err := r.readRoute(value); err != nil {
			return document.Place(err, fmt.Sprintf("routes[%d]", i))
		}
	}
	return nil
}

var channelName = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

const channelCharacters = "1-40 lower-case letters, digits, _ or -"

func (r *Routes) readRoute(value any) error {
	doc, err := document.ReadObject(value, "events", "channels", "models")
	if err != nil {
		return err
	}
	var to route
	if to.events, err = readNames(doc, "events", slices.Sorted(maps.Keys(events))); err != nil {
		return err
	}
	if to.channels, err = readNames(doc, "channels", slices.Sorted(maps.Keys(r.channels))); err != nil {
		return err
	}
	selector, err := doc.Text("models")
	if err != nil {
		return err
	}
	if selector != "" {
		parsed, err := model.ParseSelector(selector)
		if err != nil {
			return document.Place(err, "models")
		}
		if i := slices.IndexFunc(to.events, func(event string) bool { return !events[event] }); i >= 0 {
			return document.Refuse("models", "only events that are about a model beside it", document.Found(to.events[i]))
		}
		to.models = &parsed
	}
	r.routes = append(r.routes, to)
	return nil
}

// readNames reads a list of at least one known name.
func readNames(doc document.Object, field string, known []string) ([]string, error) {
	names, err := doc.Words(field)
	if err != nil {
		return nil, err
	}
	var wrong any // nil: the list is empty
	if i := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(known, name) }); i >= 0 {
		wrong = names[i]
	}
	if wrong != nil || len(names) == 0 {
		return nil, document.Refuse(field, "a list of "+strings.Join(known, ", "), document.Found(wrong))
	}
	return names, nil
}

// The kinds of channels, in their order, and the fields that only one of them has.
var (
	kinds  = []string{"webhook", "email", "list"}
	onlyOf = map[string][]string{"webhook": {"secret"}, "email": {"tls", "user", "password", "ca", "from", "to", "templates"}}

	channelFields = slices.Concat(kinds, onlyOf["webhook"], onlyOf["email"], []string{"gather", "digest", "retries", "jitter", "timeout"})
)

func readChannel(name string, value any, environment Secrets) (*Channel, error) {
	doc, err := document.ReadObject(value, channelFields...)
	if err != nil {
		return nil, err
	}
	c := &Channel{Name: name}
	if err := c.readCommon(doc); err != nil {
		return nil, err
	}
	kind := ""
	for _, one := range kinds {
		if doc.Fields[one] != nil && kind != "" {
			return nil, document.Refuse(one, "one of webhook, email and list", "a second")
		}
		if doc.Fields[one] != nil {
			kind = one
		}
	}
	for other, fields := range onlyOf {
		for _, field := range fields {
			if other != kind && doc.Fields[field] != nil {
				return nil, document.Refuse(field, "it in a channel with "+other+" alone", "it in another one")
			}
		}
	}
	switch kind {
	case "webhook":
		err = c.readWebhook(doc, environment)
	case "email":
		err = c.readEmail(doc, environment)
	case "list":
		if c.list, err = doc.Text("list"); err == nil && !channelName.MatchString(c.list) {
			err = document.Refuse("list", "a name of "+channelCharacters, document.Found(c.list))
		}
	default:
		err = document.Refuse("", "one of webhook, email and list", "none")
	}
	return c, err
}

const defaultWithin = 5 * time.Minute // of a digest

// defaultRetries try for some eleven hours.
var defaultRetries = map[string]any{"strategy": "exponential", "base": "10s", "cap": document.FormatDuration(maxRetryAfter), "count": "14"}

// readCommon reads when messages are sent, and sent again.
func (c *Channel) readCommon(doc document.Object) (err error) {
	c.digest = digest{1, defaultWithin}
	switch value := doc.Fields["digest"].(type) {
	case nil:
		if doc.Fields["list"] != nil {
			c.digest.above = 0
		}
	case string:
		if c.digest.above = 0; value != "none" {
			return document.Refuse("digest", "{above: N, within: DURATION} or none", document.Found(value))
		}
	default:
		inner, err := document.ReadObject(value, "above", "within")
		if err == nil {
			c.digest.above, _, err = inner.Int("above", 1, 1000)
		}
		if err == nil {
			c.digest.within, err = inner.Length("within", defaultWithin)
		}
		if err != nil {
			return document.Place(err, "digest")
		}
		c.digest.above = max(1, c.digest.above)
	}
	gather := 10 * time.Second
	if c.digest.above == 0 {
		gather = 0
	}
	if c.gather, err = doc.Length("gather", gather); err != nil {
		return err
	}
	if c.timeout, err = doc.Length("timeout", 10*time.Second); err != nil {
		return err
	}
	if c.timeout < time.Millisecond || c.timeout > time.Minute {
		return document.Refuse("timeout", "1ms to 1m", document.FormatDuration(c.timeout))
	}
	retries := map[string]any{"retries": defaultRetries}
	for _, field := range []string{"retries", "jitter"} {
		if value := doc.Fields[field]; value != nil {
			retries[field] = value
		}
	}
	p, err := policy.Parse(retries)
	c.retries, c.jitter = p.Retries, p.Jitter
	return err
}

func (c *Channel) readWebhook(doc document.Object, environment Secrets) error {
	text, err := doc.Text("webhook")
	if err != nil {
		return err
	}
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" {
		return document.Refuse("webhook", "a URL with http or https", "another text") // which may hold a secret
	}
	secret, err := readSecret(doc, "secret", environment)
	if err != nil {
		return err
	}
	key, err := parseSecret(secret)
	if err != nil {
		return document.Refuse("secret", "{env: NAME} or {file: PATH} that holds whsec_ and at least 16 bytes in base64", "none like it")
	}
	// A redirection would send what is signed for one host to another.
	c.sender = &webhook{text, key, &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	return nil
}

// readSecret reads the secret to which a field refers, in the environment or in a file; empty: there is no such field.
func readSecret(doc document.Object, field string, environment Secrets) (string, error) {
	value := doc.Fields[field]
	if value == nil {
		return "", nil
	}
	inner, is := value.(map[string]any)
	name, byName := inner["env"].(string)
	path, byFile := inner["file"].(string)
	switch {
	case !is || len(inner) != 1 || !byName && !byFile:
		return "", document.Refuse(field, "{env: NAME} or {file: PATH}", "something else") // perhaps the secret itself
	case byName:
		if secret := environment(name); secret != "" {
			return secret, nil
		}
		return "", document.Refuse(field+".env", "a variable that is set", document.Found(name))
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(text)) == "" {
		return "", document.Refuse(field+".file", "a file with the secret", document.Found(path))
	}
	return strings.TrimSpace(string(text)), nil
}

func (c *Channel) readEmail(doc document.Object, environment Secrets) (err error) {
	s := smtpSettings{timeout: c.timeout}
	var directory string
	for field, text := range map[string]*string{"email": &s.server, "user": &s.user, "ca": &s.authorities, "from": &s.from, "templates": &directory} {
		if *text, err = doc.Text(field); err != nil {
			return err
		}
	}
	if s.security, err = doc.OneOf("tls", "starttls", "starttls", "tls", "none"); err != nil {
		return err
	}
	if s.password, err = readSecret(doc, "password", environment); err != nil {
		return err
	}
	if (s.user == "") != (s.password == "") || s.user != "" && s.security == "none" {
		return document.Refuse("user", "user and password together, and never without TLS", "something else")
	}
	from, valid := policy.ParseAddress(s.from)
	if !valid {
		return document.Refuse("from", "an e-mail address", document.Found(doc.Fields["from"]))
	}
	s.from = from
	if c.to.byPolicy = doc.Fields["to"] == "policy"; !c.to.byPolicy {
		c.to.recipient, err = policy.ReadRecipient(doc.Fields["to"])
		if refused := (*document.Error)(nil); errors.As(err, &refused) || c.to.recipient == (policy.Recipient{}) {
			return document.Refuse("to", "an e-mail address, {payload: FIELD}, {label: NAME} or policy", document.Found(doc.Fields["to"]))
		}
	}
	letters, err := readTemplates(directory)
	if err != nil {
		return document.Refuse("templates", "a directory with subject.txt, text.txt or html.html", document.OneLine(err.Error()))
	}
	c.sender, err = newEmail(s, letters)
	return err
}
