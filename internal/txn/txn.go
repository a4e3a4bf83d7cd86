// Package txn builds batches for scripts/txn.lua: items of compares, conditions and Redis commands that are decided already. It has no word of the
// domain. Items that differ in their values only share a template, and what a batch does once is named by all of them. In a batch of few items each
// is alone.
package txn

import (
	"slices"
	"strconv"
	"strings"
)

// The types of keys.
const (
	String = "string"
	List   = "list"
	Hash   = "hash"
	Set    = "set"
	ZSet   = "zset"
	Stream = "stream"
)

// Key is the word for a key in a line: "@3" of the batch, "%1" of an item.
type Key string

// Words are the words of a line, see scripts/include/step.lua, each after a tab.
type Words []byte

func (w *Words) raw(text string) { *w = append(append(*w, '\t'), text...) }

func (w *Words) numbers(numbers []int) {
	for _, number := range numbers {
		*w = appendNumber(append(*w, ' '), number)
	}
}

// appendNumber appends a number. Most have one digit.
func appendNumber(to []byte, number int) []byte {
	if 0 <= number && number < 10 {
		return append(to, byte('0'+number))
	}
	return strconv.AppendInt(to, int64(number), 10)
}

// Text adds words that are the same in all items of a template, and hold no control character: never what somebody else has written, which is a value.
// A name of a command or verb is one.
func (w *Words) Text(texts ...string) *Words {
	for _, text := range texts {
		*w = append(append(*w, '\t', '='), text...)
	}
	return w
}

// Value adds values of the item, by their numbers.
func (w *Words) Value(numbers ...int) *Words {
	for _, number := range numbers {
		*w = appendNumber(append(*w, '\t', '$'), number)
	}
	return w
}

// Key adds keys.
func (w *Words) Key(keys ...Key) *Words {
	for _, key := range keys {
		w.raw(string(key))
	}
	return w
}

// Fields adds the fields of the item.
func (w *Words) Fields() *Words { w.raw("~"); return w }

// Drawn adds the text that a verb has drawn for the item.
func (w *Words) Drawn() *Words { w.raw("#"); return w }

// Join adds texts as one word, with spaces between them.
func (w *Words) Join(texts []string) *Words {
	for i, text := range texts {
		separator := " "
		if i == 0 {
			separator = "\t="
		}
		*w = append(append(*w, separator...), text...)
	}
	return w
}

// Add adds other words.
func (w *Words) Add(others Words) { *w = append(*w, others...) }

// Batch has the items of one call of the script.
type Batch struct {
	keys   []string // of the batch
	places map[string]Key
	types  []byte
	seen   map[string]bool // subjects

	alone  bool     // items share nothing
	once   Words    // lines of the batch, each behind a line break
	firsts []string // verbs of such lines
	groups []group
	finals []final

	templates map[string]int // their numbers, from 1 on
	lines     []any          // of them all, as arguments
	items     []any
	values    []string // to which items point, as that is cheaper than a copy of each
	itemKeys  []string
	item      Item
}

// NewBatch returns an empty batch with room for so many items. alone says that they share nothing. The script refuses that, with an empty reply and before
// it writes, where a key of the batch is of another type.
func NewBatch(items int, alone bool) *Batch {
	return &Batch{
		alone:  alone,
		places: map[string]Key{}, seen: make(map[string]bool, items), templates: map[string]int{},
		items: make([]any, 0, 14*items), values: make([]string, 0, 14*items), itemKeys: make([]string, 0, 2*items),
	}
}

// Key returns the word for a key of the batch. Where it is of another type the items that need it are refused.
func (b *Batch) Key(name, kind string) Key { return b.key(name, kind, "") }

// Must is Key. Where it is of another type nothing is done.
func (b *Batch) Must(name, kind string) Key { return b.key(name, kind, "!") }

// Asked is Key of one that a verb of First reads: that says whether it is of another type.
func (b *Batch) Asked(name, kind string) Key { return b.key(name, kind, "?") }

func (b *Batch) key(name, kind, must string) Key {
	key, known := b.places[name]
	if !known {
		b.keys = append(b.keys, name)
		key = Key("@" + strconv.Itoa(len(b.keys)))
		b.places[name] = key
		b.types = append(append(append(b.types, must...), kind...), ' ')
	}
	return key
}

// First runs a verb with keys and texts before all items, however often it is asked for.
func (b *Batch) First(verb string, keys []Key, texts ...string) {
	if !slices.Contains(b.firsts, verb) {
		b.firsts = append(b.firsts, verb)
		b.line("f", verb).Key(keys...).Text(texts...)
	}
}

type group struct {
	command string
	key     Key
}

// Group returns the number of a command and its key, for which items collect values. It is run once, with all of them.
func (b *Batch) Group(command string, key Key) int {
	if !b.alone {
		b.line("g", command).Key(key)
	}
	b.groups = append(b.groups, group{command, key})
	return len(b.groups)
}

// line begins a line of the batch.
func (b *Batch) line(what, name string) *Words {
	b.once = append(append(b.once, '\n'), what...)
	return b.once.Text(name)
}

// Item begins an item. When it is refused, so are later items about its subject that are Unrefused, if it has one; not where it changes nothing and its
// message is gone.
func (b *Batch) Item(subject string, changes bool) *Item {
	i := &b.item
	*i = Item{batch: b, changes: changes, again: b.seen[subject], words: i.words[:0], checks: i.checks[:0], kinds: i.kinds[:0], at: len(b.items), first: len(b.itemKeys)}
	b.seen[subject] = subject != ""
	b.items = append(b.items, nil)
	i.Put(subject)
	if i.again && !b.alone {
		i.line("s")
	}
	return i
}

// Item is an item under construction.
type Item struct {
	batch   *Batch
	changes bool
	again   bool  // an earlier item is about the subject
	checks  Words // lines that come first
	words   Words
	kinds   []byte // of its keys
	at      int    // place of its values
	first   int    // place of its keys
}

// Subject is the number of the value that the subject is.
const Subject = 1

// Put adds a value and returns its number.
func (i *Item) Put(value string) int {
	b := i.batch
	b.values = append(b.values, value)
	b.items = append(b.items, &b.values[len(b.values)-1])
	return len(b.items) - i.at - 1
}

var ownKeys = [8]Key{"%0", "%1", "%2", "%3", "%4", "%5", "%6", "%7"}

// Own adds a key that the item brings, and returns the word for it.
func (i *Item) Own(name, kind string) Key {
	i.batch.itemKeys = append(i.batch.itemKeys, name)
	i.kinds = append(append(i.kinds, ' '), kind...)
	if n := i.keys() - 1; n >= len(ownKeys) {
		return Key("%" + strconv.Itoa(n))
	}
	return ownKeys[i.keys()-1]
}

func (i *Item) keys() int { return len(i.batch.itemKeys) - i.first }

// line begins a line with a letter, see scripts/include/step.lua, and numbers.
func (i *Item) line(what string, numbers ...int) *Words { return i.words.line(what, numbers) }

func (w *Words) line(what string, numbers []int) *Words {
	*w = append(append(*w, '\n'), what...)
	w.numbers(numbers)
	return w
}

// Fields are names, in Words of their own, whose values are those from a number on. Two lines behind it may have them.
func (i *Item) Fields(first int, names Words) { i.line("fields", first).Add(names) }

// Do runs a command or a verb.
func (i *Item) Do(name string) *Words { return i.line("d").Text(name) }

// Help runs a command or a verb that is left out where a key is of another type.
func (i *Item) Help(name string) *Words { return i.line("h").Text(name) }

// Add collects values for a group.
func (i *Item) Add(group int, values ...int) {
	if i.batch.alone {
		i.Do(i.batch.groups[group-1].command).Key(i.batch.groups[group-1].key).Value(values...)
		return
	}
	i.line("a", group).numbers(values)
}

// Try is Add for values that only help.
func (i *Item) Try(group int, values ...int) {
	if i.batch.alone {
		command, key := i.batch.groups[group-1].command, i.batch.groups[group-1].key
		if command == "ZREM" && !i.again {
			command = "leave" // which knows the sets that were empty
		}
		i.Help(command).Key(key).Value(values...)
		return
	}
	i.line("t", group).numbers(values)
}

// Last runs a command or a verb with a key, if it has one, and texts behind all items, once, if any of those with it is applied.
func (i *Item) Last(name string, key Key, texts ...string) { i.last(false, name, key, texts...) }

// Count is Last of what adds to a field of a hash how many items have it.
func (i *Item) Count(hash Key, field string) { i.last(true, "HINCRBY", hash, field) }

// final identifies a line that runs last.
type final struct {
	name string
	key  Key
	text string // the first one
}

func (i *Item) last(counts bool, name string, key Key, texts ...string) {
	b, line := i.batch, final{name: name, key: key}
	if b.alone {
		w := i.Help(name)
		if key != "" {
			w.Key(key)
		}
		if w.Text(texts...); counts {
			w.Text("1")
		}
		return
	}
	if len(texts) > 0 {
		line.text = texts[0]
	}
	number := slices.Index(b.finals, line)
	if number < 0 {
		number = len(b.finals)
		b.finals = append(b.finals, line)
		w := b.line("l", name)
		if key != "" {
			w.Key(key)
		}
		if w.Text(texts...); counts {
			w.raw("+")
		}
	}
	i.line("b", number+1)
}

// Unrefused refuses if an earlier item about the subject was refused.
func (i *Item) Unrefused(code int) {
	if i.again {
		i.Unless(code, 0, "refused") // which asks no key
	}
}

// Equal refuses unless the first replies of a command are some values, by their numbers; of 0 none or an empty text. wrong is the code where a key is of
// another type.
func (i *Item) Equal(code, wrong int, command string, wants ...int) *Words {
	how := byte('=')
	if len(wants) > 1 {
		how = '&'
	}
	return i.check(code, wrong, how, wants).Text(command)
}

// Below refuses unless the reply of a command is below a value.
func (i *Item) Below(code, wrong int, command string, value int) *Words {
	return i.check(code, wrong, '<', []int{value}).Text(command)
}

// Unless refuses if a verb says so.
func (i *Item) Unless(code, wrong int, verb string) *Words {
	return i.check(code, wrong, '?', nil).Text(verb)
}

func (i *Item) check(code, wrong int, how byte, numbers []int) *Words {
	w := i.checks.line("check", []int{code, wrong})
	*w = append(*w, ' ', how)
	w.numbers(numbers)
	return w
}

// End ends the item.
func (i *Item) End() {
	b, changes, size := i.batch, 0, len(i.batch.items)-i.at
	if i.changes {
		changes = 1
	}
	var lines []any
	i.checks.Add(i.words)
	if b.alone {
		lines = b.appendLines(nil, string(i.checks), i.fill)
		size = len(lines) + 2
	}
	end := append(appendNumber(nil, size), ' ')
	end = append(appendNumber(end, i.keys()), ' ')
	end = append(appendNumber(end, changes), i.kinds...)
	if b.alone {
		b.items = append(append(b.items[:i.at], "i"+string(end), b.items[i.at+Subject]), lines...)
		return
	}
	i.checks.line("i "+string(end), nil)
	number, known := b.templates[string(i.checks)]
	if !known {
		number = len(b.templates) + 1
		b.templates[string(i.checks)] = number
		b.lines = b.appendLines(b.lines, string(i.checks), nil)
	}
	b.items[i.at] = number
}

// fill fills a word of the item in.
func (i *Item) fill(word string) (text string, filled bool) {
	b, mark := i.batch, word[0]
	switch number, _ := strconv.Atoi(word[1:]); mark {
	case '$':
		return *b.items[i.at+number].(*string), true
	case '%':
		return b.itemKeys[i.first+number], true
	case '@':
		return b.keys[number-1], true
	default:
		return word, false
	}
}

// Keys are KEYS of the script.
func (b *Batch) Keys() []string { return append(b.keys, b.itemKeys...) }

// Args are ARGV of the script, for the instant of the batch in RFC 3339 and Unix ms.
func (b *Batch) Args(instant string, ms int64) []any {
	lines := append(b.appendLines(nil, string(b.once), nil), b.lines...)
	return slices.Concat([]any{instant, ms, string(b.types), len(lines)}, lines, b.items)
}

// appendLines appends the arguments that lines are. The line "fields" is none: it names the fields of steps behind it. fill fills words in; nil: a
// template leaves that to the script.
func (b *Batch) appendLines(to []any, lines string, fill func(word string) (string, bool)) []any {
	s := step{fill: fill}
	for line := range strings.SplitSeq(lines, "\n") {
		head, words, _ := strings.Cut(line, "\t")
		word, numbers, _ := strings.Cut(head, " ")
		switch word {
		case "":
		case "fields":
			s.fields = newFields(numbers, words)
		case "check":
			numbers := strings.Split(numbers, " ")
			to = s.append(to, numbers[2], words, numbers[0]+numbers[1], numbers[3:]...)
		case "f":
			once := step{fill: (&Item{batch: b}).fill}
			to = once.append(to, word, words, "")
		case "d", "h", "g", "l":
			to = s.append(to, word, words, "")
		default:
			to = append(to, word+numbers)
		}
	}
	return to
}

// newFields returns names, each before the word for its value.
func newFields(first, names string) (all []string) {
	number, _ := strconv.Atoi(first)
	for name := range strings.SplitSeq(names, "\t") {
		all = append(all, name, "$"+strconv.Itoa(number))
		number++
	}
	return all
}

// step makes arguments of steps.
type step struct {
	fields []string
	fill   func(word string) (text string, filled bool)
}

// append appends the arguments that a step is: its head, its words, and the values that a check wants, or their numbers. The head has the letter, the
// number of words, the codes, and the places of those to fill in.
func (s *step) append(to []any, letter, words, codes string, wants ...string) []any {
	place, marks := len(to), make([]byte, 0, 32)
	to = append(to, nil)
	add := func(word string) {
		text, filled := strings.CutPrefix(word, "=")
		if !filled && s.fill != nil {
			text, filled = s.fill(word)
		}
		if to = append(to, text); !filled {
			marks = append(marks, pair(len(to)-place-1)...)
		}
	}
	for word := range strings.SplitSeq(words, "\t") {
		if word != "~" {
			add(word)
			continue
		}
		for _, word := range s.fields {
			add(word)
		}
	}
	to[place] = letter + string(pair(len(to)-place-1)) + codes + string(marks)
	for _, number := range wants {
		if number = strings.TrimPrefix(number, "0"); number != "" && s.fill != nil {
			number, _ = s.fill("$" + number)
		}
		to = append(to, number)
	}
	return to
}

// pair is a number below 4096 as two characters.
func pair(n int) []byte { return []byte{byte('0' + n/64), byte('0' + n%64)} }
