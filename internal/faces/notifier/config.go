package notifier

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Routes says who is told of what: channels, and which entries of the outbox go to which of them. It belongs to one process: Close ends it.
type Routes struct {
	channels map[string]*Channel
	routes   []route
}

// Channel is one way of telling people or programs.
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

// route is which entries go to which channels.
type route struct {
	events   []string // sorted
	channels []string
	models   *model.Selector // nil: all entries, also those about no model
}

// addressee is who gets the e-mail of a channel.
type addressee struct {
	recipient policy.Recipient
	byPolicy  bool // whoever the policy of the model says
}

// events are what a route may name, by whether they are about a model. They are those of the outbox.
var events = map[string]bool{
	string(policy.NoticeDisabled): true, string(policy.NoticeRecovered): true, string(policy.NoticeFailing): true,
	string(policy.NoticeStale): true, string(policy.NoticeFresh): true,
	"circuit_opened": false, "circuit_closed": false, "new_error": false,
}

// Secrets finds what a file of routes only refers to.
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
	channels, ok := doc.Fields["channels"].(map[string]any)
	if !ok || len(channels) == 0 {
		return document.Refuse("channels", "an object with at least one channel", document.Found(doc.Fields["channels"]))
	}
	for _, name := range slices.Sorted(maps.Keys(channels)) {
		if !channelName.MatchString(name) {
			return document.Refuse("channels", "names of 1-40 lower-case letters, digits, _ or -", document.Found(name))
		}
		channel, err := readChannel(name, channels[name], environment)
		if err != nil {
			return document.Place(err, "channels."+name)
		}
		r.channels[name] = channel
	}
	routes, ok := doc.Fields["routes"].([]any)
	if !ok || len(routes) == 0 {
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

func (r *Routes) readRoute(value any) error {
	doc, err := document.ReadObject(value, "events", "channels", "models")
	if err != nil {
		return err
	}
	var to route
	if to.events, err = doc.Words("events"); err != nil {
		return err
	}
	if to.channels, err = doc.Words("channels"); err != nil {
		return err
	}
	known := slices.Sorted(maps.Keys(events))
	if i := slices.IndexFunc(to.events, func(event string) bool { return !slices.Contains(known, event) }); i >= 0 || len(to.events) == 0 {
		return document.Refuse("events", "a list of "+strings.Join(known, ", "), document.Found(wrongOf(to.events, i)))
	}
	unknown := slices.IndexFunc(to.channels, func(name string) bool { return r.channels[name] == nil })
	if unknown >= 0 || len(to.channels) == 0 {
		return document.Refuse("channels", "a list of "+strings.Join(slices.Sorted(maps.Keys(r.channels)), ", "), document.Found(wrongOf(to.channels, unknown)))
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

// wrongOf is what is wrong in a list; of an empty one that it is.
func wrongOf(list []string, i int) any {
	if i < 0 {
		return nil
	}
	return list[i]
}

var channelFields = []string{
	"webhook", "email", "list", "secret", "tls", "user", "password", "ca", "from", "to", "templates", "gather", "digest", "retries", "jitter", "timeout",
}

// onlyOf are the fields that only one kind of channel has.
var onlyOf = map[string][]string{
	"webhook": {"secret"}, "email": {"tls", "user", "password", "ca", "from", "to", "templates"}, "list": {},
}

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
	for _, one := range []string{"webhook", "email", "list"} {
		if doc.Fields[one] == nil {
			continue
		}
		if kind != "" {
			return nil, document.Refuse(one, "one of webhook, email and list", "a second")
		}
		kind = one
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
		err = c.readList(doc)
	default:
		err = document.Refuse("", "one of webhook, email and list", "none")
	}
	return c, err
}

const (
	defaultGather  = 10 * time.Second
	defaultWithin  = 5 * time.Minute
	defaultTimeout = 10 * time.Second
	maxTimeout     = time.Minute
)

// defaultRetries try for some eleven hours.
var defaultRetries = map[string]any{"strategy": "exponential", "base": "10s", "cap": document.FormatDuration(maxAsked), "count": "14"}

// readCommon reads when messages are sent, and sent again.
func (c *Channel) readCommon(doc document.Object) (err error) {
	c.digest = digest{1, defaultWithin}
	if doc.Fields["list"] != nil {
		c.digest.above = 0
	}
	switch value := doc.Fields["digest"].(type) {
	case nil:
	case string:
		if value != "none" {
			return document.Refuse("digest", "{above: N, within: DURATION} or none", document.Found(value))
		}
		c.digest.above = 0
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
	gather := defaultGather
	if c.digest.above == 0 {
		gather = 0
	}
	if c.gather, err = doc.Length("gather", gather); err != nil {
		return err
	}
	if c.timeout, err = doc.Length("timeout", defaultTimeout); err != nil {
		return err
	}
	if c.timeout < time.Millisecond || c.timeout > maxTimeout {
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
	c.sender = newWebhook(text, key)
	return nil
}

// readSecret reads what a field refers to, in the environment or in a file; empty: there is no such field.
func readSecret(doc document.Object, field string, environment Secrets) (string, error) {
	value := doc.Fields[field]
	if value == nil {
		return "", nil
	}
	const want = "{env: NAME} or {file: PATH}"
	inner, is := value.(map[string]any)
	name, byName := inner["env"].(string)
	path, byFile := inner["file"].(string)
	switch {
	case !is || len(inner) != 1 || !byName && !byFile:
		return "", document.Refuse(field, want, "something else") // perhaps the secret itself
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

func (c *Channel) readEmail(doc document.Object, environment Secrets) error {
	settings := smtpSettings{timeout: c.timeout}
	var directory string
	for field, text := range map[string]*string{"email": &settings.server, "user": &settings.user, "ca": &settings.authorities, "from": &settings.from, "templates": &directory} {
		var err error
		if *text, err = doc.Text(field); err != nil {
			return err
		}
	}
	var err error
	if settings.security, err = doc.OneOf("tls", "starttls", "starttls", "tls", "none"); err != nil {
		return err
	}
	if settings.password, err = readSecret(doc, "password", environment); err != nil {
		return err
	}
	if (settings.user == "") != (settings.password == "") || settings.user != "" && settings.security == "none" {
		return document.Refuse("user", "user and password together, and never without TLS", "something else")
	}
	from, valid := policy.ParseAddress(settings.from)
	if !valid {
		return document.Refuse("from", "an e-mail address", document.Found(doc.Fields["from"]))
	}
	settings.from = from
	if c.to, err = readAddressee(doc.Fields["to"]); err != nil {
		return document.Place(err, "to")
	}
	letters, err := readTemplates(directory)
	if err != nil {
		return document.Refuse("templates", "a directory with subject.txt, text.txt or html.html", document.OneLine(err.Error()))
	}
	sender, err := newEmail(settings, letters)
	c.sender = sender
	return err
}

// toPolicy is how a channel says that the policies of the models say who gets its e-mail.
const toPolicy = "policy"

func readAddressee(value any) (addressee, error) {
	if value == toPolicy {
		return addressee{byPolicy: true}, nil
	}
	to, err := policy.ReadRecipient(value)
	if refused := (*document.Error)(nil); errors.As(err, &refused) || to == (policy.Recipient{}) {
		return addressee{}, document.Refuse("", "an e-mail address, {payload: FIELD}, {label: NAME} or policy", document.Found(value))
	}
	return addressee{recipient: to}, nil
}

func (c *Channel) readList(doc document.Object) error {
	name, err := doc.Text("list")
	if err == nil && !channelName.MatchString(name) {
		err = document.Refuse("list", "a name of 1-40 lower-case letters, digits, _ or -", document.Found(name))
	}
	c.list = cmp.Or(name, c.Name)
	return err
}
