package english

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
	"github.com/refreshd/refreshd/model/words"
)

type draft struct {
	doc      map[string]any
	lines    map[string]int
	failures map[int]outcome

	parts map[string]any // of a strategy
	list  []any          // the delays that the sentence at hand lists
	onAny bool           // it begins with "on failure"
	each  bool           // "On failure, retry after 5 minutes": each one, or once?

	errorLine  int  // the last line that says what follows an error
	onlyNotify bool // a sentence says that nothing else is reported

	mails  bool   // a sentence says e-mail
	spread string // that the schedule says

	looks    *int      // that were taken
	now      *sentence // the one being read
	err      error     // the first refusal: nothing counts behind it
	ended    int       // the line of a lone action, such as "Panic"; 0: none
	at       int       // the failure whose outcome is being read, or anError; 0: none
	inWindow bool      // below "Give up after one week of unsuccessful attempts:"
	block    block
}

// block holds the sentences below one that ends with a colon.
type block struct {
	heading level
	entered bool // a sentence of it was read
	flat    bool // its sentences have the indentation of the heading, so that only another sentence ends it
}

// errNotKnown refuses a sentence whose form fits while its parts say nothing that is known.
var errNotKnown = errors.New("not a known sentence")

// Parse reads a policy in English and returns it as a decoded document in canonical form, as policy.Parse takes it, together with the lines that
// its fields come from. At most 256 KB in 1000 lines. Every error is an *Error, which names the line. What a sentence says well but not sensibly,
// such as a time zone that does not exist, is left for policy.Parse to refuse and for Source.Place to place.
func Parse(text string) (map[string]any, *Source, error) {
	d := readAll(text)
	switch {
	case errors.Is(d.err, errNotKnown):
		return nil, nil, d.now.explain()
	case d.err != nil:
		return nil, nil, d.err
	}
	return d.doc, &Source{d.lines, d.mails}, nil
}

func readAll(text string) *draft {
	d := &draft{doc: make(map[string]any), lines: make(map[string]int), failures: make(map[int]outcome), parts: make(map[string]any), looks: new(int)}
	sentences, err := readText(text)
	if err == nil && len(sentences) == 0 {
		err = refuse(0, `at least one sentence such as "Refresh the model every 2 hours"`, "nothing")
	}
	d.fail(err)
	for i := 0; i < len(sentences) && d.err == nil; i++ {
		d.read(&sentences[i])
	}
	if _, given := d.doc["spread"]; d.spread != "" && d.spread != "0s" && !given { // of "twice a day", unless a sentence sets another one
		d.doc["spread"], d.lines["spread"] = d.spread, d.lines["rrule"]
	}
	if d.err == nil {
		d.retries()
	}
	return d
}

func (s *sentence) explain() error {
	nearest := words.Near(s.original(), knownSentences())
	refused := &Error{s.line, &document.Error{Want: "a known sentence", Found: document.Found(s.original())}, nearest}
	if nearest == "" { // it is nonsense
		refused.FieldError.Want += ` such as "Refresh the model every 2 hours" or "On the first failure, retry immediately"`
		return refused
	}
	known := words.Cut(nearest)
	for _, word := range words.Cut(s.written) {
		_, notUnit := words.ParseDuration("1 " + word)
		if !slices.Contains(known, word) && !strings.ContainsAny(word, `0123456789"`) && notUnit != nil {
			refused.FieldError.Found += " (" + document.Found(word) + " is not understood there)"
			break
		}
	}
	return refused
}

func (d *draft) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// mustKnow refuses the sentence at hand as unknown, unless a part of it is known.
func (d *draft) mustKnow(known bool) {
	if !known {
		d.fail(errNotKnown)
	}
}

// known reports whether the sentence at hand was known, even if its content is refused. If not, another form may be tried.
func (d *draft) known() bool { return !errors.Is(d.err, errNotKnown) }

// copy returns the draft as it is now, to go back to.
func (d *draft) copy() draft {
	c := *d
	c.doc, c.lines, c.parts, c.failures = maps.Clone(d.doc), maps.Clone(d.lines), maps.Clone(d.parts), maps.Clone(d.failures)
	return c
}

func (d *draft) openBlock() {
	if d.now.opens {
		d.block = block{heading: d.now.level}
	} else {
		d.closeBlock()
	}
}

func (d *draft) closeBlock() { d.at, d.inWindow = 0, false }

func (d *draft) set(field string, value any) {
	d.once(field, d.lines[field])
	d.doc[field], d.lines[field] = value, d.now.line
}

// agree sets a field unless it has that value: several sentences may say the same.
func (d *draft) agree(field string, value any) {
	if !reflect.DeepEqual(d.doc[field], value) {
		d.set(field, value)
	}
}

func (d *draft) setInner(field, path string) {
	d.once("it", d.lines[path])
	d.lines[path] = d.now.line
	d.lines[field] = cmp.Or(d.lines[field], d.now.line)
}

// add adds an element to a list of the policy; build makes it for its place.
func (d *draft) add(field string, build func(place string) any) {
	list, _ := d.doc[field].([]any)
	if len(list) == 0 {
		d.once(field, d.lines[field])
	}
	place := element(field, len(list))
	d.doc[field] = append(slices.Clone(list), build(place))
	d.setInner(field, place)
}

// put adds a part to an object of the policy.
func (d *draft) put(field, part string, value any) {
	before, found := d.doc[field].(map[string]any)
	if !found {
		d.once(field, d.lines[field])
	}
	object := map[string]any{part: value}
	maps.Copy(object, before)
	d.doc[field] = object
	d.setInner(field, field+"."+part)
}

// once refuses a second sentence about something; line is that of the first, or 0.
func (d *draft) once(about string, line int) {
	if line > 0 {
		d.refuse("one sentence about "+about+", which is in line "+strconv.Itoa(line), "a second: "+d.found())
	}
}

// exhausted sets what follows the failure after the last retry. Several sentences may say so, if they say the same.
func (d *draft) exhausted(what string) {
	if line := d.lines["on_exhausted"]; line > 0 && d.doc["on_exhausted"] != what {
		already := map[string]string{giveUp: "giving up", nextPlanned: "waiting for the next scheduled refresh"}[d.doc["on_exhausted"].(string)]
		d.refuse(already+" after the last retry, as line "+strconv.Itoa(line)+" says", d.found())
	} else if line == 0 {
		d.doc["on_exhausted"], d.lines["on_exhausted"] = what, d.now.line
	}
}

func (d *draft) notify(notice policy.Notice) {
	d.mail()
	only := onlyWord.MatchString(d.now.written)
	if line := d.lines["notify"]; line != d.now.line && (only || d.onlyNotify) {
		d.once("notify", line)
	}
	d.onlyNotify = only
	before, _ := d.doc["notify"].([]any)
	if len(before) == 0 {
		d.set("notify", nil)
	}
	var all []any
	for _, one := range policy.Notices {
		if one == notice || slices.Contains(before, any(string(one))) {
			all = append(all, string(one))
		}
	}
	d.doc["notify"] = all
}

var (
	onlyWord = regexp.MustCompile(`(?i)\bonly\b`)
	mailWord = regexp.MustCompile(`(?i)\be-?mail\b`)
)

func (d *draft) mail() { d.mails = d.mails || mailWord.MatchString(d.now.written) }

func (d *draft) refuse(want, found string) { d.fail(refuse(d.now.line, want, found)) }

func (d *draft) refuseIf(wrong bool, want, found string) {
	if wrong {
		d.refuse(want, found)
	}
}

func (d *draft) found() string { return document.Found(d.now.original()) }

func (d *draft) duration(field, text string) string {
	length, err := words.ParseDuration(text)
	d.fail(d.place(err, field))
	return document.FormatDuration(length)
}

func (d *draft) place(err error, field string) error {
	refused, is := errors.AsType[*document.Error](err)
	if !is {
		return err
	}
	if refused.Field == "" {
		refused = refused.At(field)
	}
	return &Error{Line: d.now.line, FieldError: refused}
}

func element(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// Error is the refusal of one line of a text. It unwraps to a *document.Error.
type Error struct {
	Line       int // 1 is the first; 0: the text as a whole
	FieldError *document.Error
	Nearest    string // for a sentence that is not known: the most similar one that is
}

func (e *Error) Error() string {
	text := e.FieldError.Error()
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	if e.Nearest != "" {
		text += "; nearest: " + e.Nearest
	}
	return text
}

// Unwrap returns the *document.Error.
func (e *Error) Unwrap() error { return e.FieldError }

// Source knows the line of each field of a policy.
type Source struct {
	lines map[string]int
	mails bool
}

// SaysMail reports whether a sentence says that somebody gets e-mail.
func (s *Source) SaysMail() bool { return s.mails }

// Line returns the line (1 is the first) that sets a field such as "timeout", "retries[2]" or "delays_by_error.Gone". A
// field that no sentence names belongs to the line of the nearest field around it; 0 when there is none.
func (s *Source) Line(field string) int {
	for field != "" {
		if line, found := s.lines[field]; found {
			return line
		}
		// "rrule line 2" and "rrule BYHOUR" are places inside rrule.
		field = field[:max(0, strings.LastIndexAny(field, ".[ "))]
	}
	return 0
}
