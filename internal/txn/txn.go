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

// Batch has the items of one call of the script.
type Batch struct {
	keys   []string // of the batch
	places map[string]Key
	types  []byte
	seen   map[string]bool // subjects

	alone  bool     // each item brings its lines
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

// NewBatch returns an empty batch with room for so many items. alone says that each brings its lines. The script refuses that, with an empty reply and before
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
