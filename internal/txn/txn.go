// Package txn builds batches for scripts/txn.lua: items of compares, conditions and Redis commands that are decided already. It has no word of the
// domain. Items that differ in their values only share a template.
package txn

import (
	"strconv"
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

// Key is the word for a key in a line: "@3" of the batch, "%1 list" of an item.
type Key string

// Words are those of a line, see scripts/include/step.lua, each behind a tab.
type Words []byte

func (w *Words) raw(text string) { *w = append(append(*w, '\t'), text...) }

// Text adds words that are the same in all items of a template, without tabs and line breaks. A name of a command or verb is one.
func (w *Words) Text(texts ...string) *Words {
	for _, text := range texts {
		*w = append(append(*w, '\t', '='), text...)
	}
	return w
}

// Value adds values of the item, by their numbers.
func (w *Words) Value(numbers ...int) *Words {
	for _, number := range numbers {
		*w = strconv.AppendInt(append(*w, '\t', '$'), int64(number), 10)
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

// Drawn adds what a verb has drawn for the item.
func (w *Words) Drawn() *Words { w.raw("#"); return w }

// Count adds how many items are applied, in a line that runs last.
func (w *Words) Count() *Words { w.raw("+"); return w }

// Add adds other words.
func (w *Words) Add(others Words) { *w = append(*w, others...) }

// Batch is what one call of the script applies.
type Batch struct {
	keys   []string // of the batch
	places map[string]Key
	seen   map[string]bool // subjects
	types  []byte

	first, groups, last lines
	templates           lines
	items               []any
	itemKeys            []string
	item                Item
}

// lines are lines, each once.
type lines struct {
	numbers map[string]int // from 1 on
	args    []any
}

// add returns the number of a line.
func (l *lines) add(line []byte) int {
	number, known := l.numbers[string(line)]
	if !known {
		if l.numbers == nil {
			l.numbers = map[string]int{}
		}
		number = len(l.numbers) + 1
		text := string(line)
		l.numbers[text], l.args = number, append(l.args, text)
	}
	return number
}

// NewBatch returns an empty batch with room for so many items.
func NewBatch(items int) *Batch {
	return &Batch{places: map[string]Key{}, seen: make(map[string]bool, items), items: make([]any, 0, 20*items), itemKeys: make([]string, 0, 2*items)}
}

// Key returns the word for a key of the batch. Where it is of another type the items that need it are refused.
func (b *Batch) Key(name, kind string) Key { return b.key(name, kind, "") }

// Must is Key. Where it is of another type nothing is done.
func (b *Batch) Must(name, kind string) Key { return b.key(name, kind, "!") }

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

// First runs a line before all items, once, and returns its number among them.
func (b *Batch) First(words *Words) int { return b.first.add(*words) }

// Group returns the number of the group that collects values for a command and its key, which is run once for the batch.
func (b *Batch) Group(command string, key Key) int {
	return b.groups.add(*new(Words).Text(command).Key(key))
}

// Item begins an item. When it is refused, so are later items about its subject that are Unrefused, if it has one; not where it changes nothing and its
// message is gone.
func (b *Batch) Item(subject string, changes bool) *Item {
	i := &b.item
	*i = Item{batch: b, changes: changes, again: b.seen[subject], words: i.words[:0], at: len(b.items)}
	b.seen[subject] = subject != ""
	b.items = append(b.items, nil, subject)
	return i
}

// Item is an item under construction.
type Item struct {
	batch    *Batch
	changes  bool
	again    bool // an earlier item is about the subject
	words    Words
	at, keys int
}

// Subject is the number of the value that the subject is.
const Subject = 1

// Put adds a value and returns its number.
func (i *Item) Put(value string) int {
	i.batch.items = append(i.batch.items, value)
	return len(i.batch.items) - i.at - 1
}

var ownKeys = func() (words [8]map[string]Key) {
	for n := range words {
		words[n] = map[string]Key{}
		for _, kind := range []string{String, List, Hash, Set, ZSet, Stream} {
			words[n][kind] = Key("%" + strconv.Itoa(n) + " " + kind)
		}
	}
	return words
}()

// Own adds a key that the item brings, and returns the word for it.
func (i *Item) Own(name, kind string) Key {
	i.batch.itemKeys = append(i.batch.itemKeys, name)
	i.keys++
	if n := i.keys - 1; n < len(ownKeys) {
		return ownKeys[n][kind]
	}
	return Key("%" + strconv.Itoa(i.keys-1) + " " + kind)
}

// line begins a line with a word and numbers.
func (i *Item) line(what string, numbers ...int) *Words {
	i.words = append(append(i.words, '\n'), what...)
	for _, number := range numbers {
		i.words = strconv.AppendInt(append(i.words, ' '), int64(number), 10)
	}
	return &i.words
}

// Fields are names, in Words of their own, whose values are those from a number on. Two lines behind it may have them.
func (i *Item) Fields(first int, names Words) { i.line("fields", first).Add(names) }

// Do runs a command or a verb.
func (i *Item) Do(name string) *Words { return i.line("do").Text(name) }

// Help runs a command or a verb that is left out where a key is of another type.
func (i *Item) Help(name string) *Words { return i.line("help").Text(name) }

// Need refuses the item where a key of the batch is of another type.
func (i *Item) Need(key Key) { i.line("need " + string(key[1:])) }

// Add adds values to a group.
func (i *Item) Add(group int, values ...int) { i.line("add", append([]int{group}, values...)...) }

// Try is Add to a group that only helps.
func (i *Item) Try(group int, values ...int) { i.line("try", append([]int{group}, values...)...) }

// Last runs a line behind all items, once, if any of those with it is applied.
func (i *Item) Last(words *Words) { i.line("last", i.batch.last.add(*words)) }

// Unrefused refuses if an earlier item about the subject was refused.
func (i *Item) Unrefused(code int) {
	if i.again {
		i.Unless(code, code, "refused")
	}
}

// Equal refuses unless the first replies of a command are some values, by their numbers; of 0 none or an empty text. wrong is the code where a key is of another type.
func (i *Item) Equal(code, wrong int, command string, wants ...int) *Words {
	return i.check(code, wrong, '=', wants).Text(command)
}

// Below refuses unless the reply of a command is below a value.
func (i *Item) Below(code, wrong int, command string, value int) *Words {
	return i.check(code, wrong, '<', []int{value}).Text(command)
}

// Unless refuses if a verb says so.
func (i *Item) Unless(code, wrong int, verb string) *Words {
	return i.check(code, wrong, '?', nil).Text(verb)
}

// Never refuses all items of the template if a verb without values says so.
func (i *Item) Never(code int, verb string) *Words { return i.line("unless", code).Text(verb) }

func (i *Item) check(code, wrong int, how byte, numbers []int) *Words {
	w := i.line("check", code, wrong)
	*w = append(*w, ' ', how)
	for _, number := range numbers {
		*w = strconv.AppendInt(append(*w, ' '), int64(number), 10)
	}
	return w
}

// End ends the item.
func (i *Item) End() {
	number := map[bool]int{true: 1}
	i.line("item", len(i.batch.items)-i.at, i.keys, number[i.changes], number[i.again])
	i.batch.items[i.at] = i.batch.templates.add(append(i.words, '\n')[1:])
}

// Keys are KEYS of the script.
func (b *Batch) Keys() []string { return append(b.keys, b.itemKeys...) }

// Args are ARGV of the script, for the instant of the batch in RFC 3339 and Unix ms.
func (b *Batch) Args(instant string, ms int64) []any {
	args := []any{instant, ms, string(b.types)}
	for _, l := range []*lines{&b.first, &b.groups, &b.last, &b.templates} {
		args = append(append(args, len(l.numbers)), l.args...)
	}
	return append(args, b.items...)
}
