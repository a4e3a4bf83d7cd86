package notifier

import (
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

	"github.com/wneessen/go-mail"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Routes say which entries of the outbox go to which channels. Whoever runs them closes them.
type Routes struct {
	channels map[string]*Channel
	routes   []route
}

// Channel is one way to reach people or programs.
type Channel struct {
	Name string

	list     string           // of Redis, for other programs; empty: it has a sender
	sender   sender           // nil: it has a list
	to       policy.Recipient // of e-mail
	byPolicy bool             // the policy of the model names the recipient
	gather   time.Duration
	digest   digest
	retries  policy.Retries
	jitter   float64
	timeout  time.Duration
	closed   atomic.Int64 // until when a server asked to be left alone, in Unix ms
}

type route struct {
	events   []string // sorted
	channels []string
	models   *model.Selector // nil: all entries, also those about no model
}

// events are the possible events of a route, by whether they are about a model.
var events = map[string]bool{
	string(policy.NoticeDisabled): true, string(policy.NoticeRecovered): true, string(policy.NoticeFailing): true,
	string(policy.NoticeStale): true, string(policy.NoticeFresh): true, string(policy.NoticeSuspect): true,
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

// Close ends idle connections, which whoever still runs opens again.
func (r *Routes) Close() {
	for _, channel := range r.channels {
		if posts, is := channel.sender.(*webhook); is {
			posts.client.CloseIdleConnections()
		}
	}
}

func (r *Routes) read(value any, environment Secrets) error {
	doc := document.Read(value, "channels", "routes")
	channels, _ := doc.Fields["channels"].(map[string]any)
	doc.Require(len(channels) > 0, "channels", "an object with at least one channel")
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		if !channelName.MatchString(name) {
			doc.Refuse("channels", "names of "+channelCharacters, document.Found(name))
		}
		if doc.Err() != nil {
			return doc.Err()
		}
		channel, err := readChannel(name, channels[name], environment)
		doc.Fail(document.Place(err, "channels."+name))
		r.channels[name] = channel
	}
	routes, _ := doc.Fields["routes"].([]any)
	doc.Require(len(routes) > 0, "routes", "a list of at least one route")
	for i, value := range routes {
		doc.Fail(document.Place(r.readRoute(value), fmt.Sprintf("routes[%d]", i)))
	}
	return doc.Err()
}

var channelName = regexp.MustCompile(`^[a-z0-9_-]{1,40}$`)

const channelCharacters = "1-40 lower-case letters, digits, _ or -"

func (r *Routes) readRoute(value any) error {
	doc := document.Read(value, "events", "channels", "models")
	to := route{events: readNames(doc, "events", slices.Sorted(maps.Keys(events))), channels: readNames(doc, "channels", slices.Sorted(maps.Keys(r.channels)))}
	if selector := doc.Text("models"); selector != "" {
		parsed, err := model.ParseSelector(selector)
		doc.Fail(document.Place(err, "models"))
		if i := slices.IndexFunc(to.events, func(event string) bool { return !events[event] }); i >= 0 {
			doc.Refuse("models", "only events that are about a model beside it", document.Found(to.events[i]))
		}
		to.models = &parsed
	}
	r.routes = append(r.routes, to)
	return doc.Err()
}

func readNames(doc *document.Reader, field string, known []string) []string {
	names := doc.Words(field)
	var wrong any // nil: the list is empty
	if i := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(known, name) }); i >= 0 {
		wrong = names[i]
	}
	if wrong != nil || len(names) == 0 {
		doc.Refuse(field, "a list of "+strings.Join(known, ", "), document.Found(wrong))
	}
	return names
}

// The kinds of channels, and the fields of only one of them.
var (
	kinds  = []string{"webhook", "email", "list"}
	onlyOf = map[string][]string{"webhook": {"secret"}, "email": {"tls", "user", "password", "ca", "from", "to", "templates"}}

	channelFields = slices.Concat(kinds, onlyOf["webhook"], onlyOf["email"], []string{"gather", "digest", "retries", "jitter", "timeout"})
)

func readChannel(name string, value any, environment Secrets) (*Channel, error) {
	doc := document.Read(value, channelFields...)
	c := &Channel{Name: name}
	c.readCommon(doc)
	kind := ""
	for _, one := range kinds {
		if doc.Fields[one] != nil && kind != "" {
			doc.Refuse(one, "one of webhook, email and list", "a second")
		}
		if doc.Fields[one] != nil {
			kind = one
		}
	}
	for other, fields := range onlyOf {
		for _, field := range fields {
			if other != kind && doc.Fields[field] != nil {
				doc.Refuse(field, "it in a channel with "+other+" alone", "it in another one")
			}
		}
	}
	switch kind {
	case "webhook":
		c.readWebhook(doc, environment)
	case "email":
		c.readEmail(doc, environment)
	case "list":
		c.list = doc.Text("list")
		doc.Require(channelName.MatchString(c.list), "list", "a name of "+channelCharacters)
	default:
		doc.Refuse("", "one of webhook, email and list", "none")
	}
	return c, doc.Err()
}

const defaultWithin = 5 * time.Minute // of a digest

// defaultRetries last about eleven hours.
var defaultRetries = map[string]any{"strategy": "exponential", "base": "10s", "cap": document.FormatDuration(maxRetryAfter), "count": "14"}

// readCommon reads when messages are sent, and sent again.
func (c *Channel) readCommon(doc *document.Reader) {
	c.digest = digest{1, defaultWithin}
	switch value := doc.Fields["digest"].(type) {
	case nil:
		if doc.Fields["list"] != nil {
			c.digest.above = 0
		}
	case string:
		c.digest.above = 0
		doc.Require(value == "none", "digest", "{above: N, within: DURATION} or none")
	default:
		inner := document.Read(value, "above", "within")
		c.digest = digest{max(1, inner.Int("above", 1, 1000)), inner.Length("within", defaultWithin)}
		doc.Fail(document.Place(inner.Err(), "digest"))
	}
	gather := 10 * time.Second
	if c.digest.above == 0 {
		gather = 0
	}
	c.gather, c.timeout = doc.Length("gather", gather), doc.Length("timeout", 10*time.Second)
	if c.timeout < time.Millisecond || c.timeout > time.Minute {
		doc.Refuse("timeout", "1ms to 1m", document.FormatDuration(c.timeout))
	}
	retries := map[string]any{"retries": defaultRetries}
	for _, field := range []string{"retries", "jitter"} {
		if value := doc.Fields[field]; value != nil {
			retries[field] = value
		}
	}
	p, err := policy.Parse(retries)
	doc.Fail(err)
	c.retries, c.jitter = p.Retries, p.Jitter
}

func (c *Channel) readWebhook(doc *document.Reader, environment Secrets) {
	text := doc.Text("webhook")
	address, err := url.Parse(text)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" {
		doc.Refuse("webhook", "a URL with http or https", "another text") // which may hold a secret
	}
	key, err := parseSecret(readSecret(doc, "secret", environment))
	if err != nil {
		doc.Refuse("secret", "{env: NAME} or {file: PATH} that holds whsec_ and at least 16 bytes in base64", "none like it")
	}
	// A redirection would send to one host what is signed for another.
	c.sender = &webhook{text, key, &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// readSecret reads the secret of a field from the environment or a file; empty: there is no such field.
func readSecret(doc *document.Reader, field string, environment Secrets) string {
	value := doc.Fields[field]
	if value == nil {
		return ""
	}
	inner, is := value.(map[string]any)
	name, byName := inner["env"].(string)
	path, byFile := inner["file"].(string)
	switch {
	case !is || len(inner) != 1 || !byName && !byFile:
		doc.Refuse(field, "{env: NAME} or {file: PATH}", "something else") // perhaps the secret itself
		return ""
	case byName:
		secret := environment(name)
		if secret == "" {
			doc.Refuse(field+".env", "a variable that is set", document.Found(name))
		}
		return secret
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(text)) == "" {
		doc.Refuse(field+".file", "a file with the secret", document.Found(path))
	}
	return strings.TrimSpace(string(text))
}

func (c *Channel) readEmail(doc *document.Reader, environment Secrets) {
	e := &email{options: []mail.Option{mail.WithTimeout(c.timeout), mail.WithoutNoop()}}
	e.readLogin(doc, environment)
	from, valid := policy.ParseAddress(doc.Text("from"))
	doc.Require(valid, "from", "an e-mail address")
	e.from = from
	var err error
	if c.byPolicy = doc.Fields["to"] == "policy"; !c.byPolicy {
		c.to, err = policy.ReadRecipient(doc.Fields["to"])
		doc.Require(err == nil && c.to != (policy.Recipient{}), "to", "an e-mail address, {payload: FIELD}, {label: NAME} or policy")
	}
	if e.templates, err = readTemplates(doc.Text("templates")); err != nil {
		doc.Refuse("templates", "a directory with subject.txt, text.txt or html.html", document.OneLine(err.Error()))
	}
	e.readServer(doc)
	c.sender = e
}
