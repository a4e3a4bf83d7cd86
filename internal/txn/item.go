package txn

import (
	"slices"
	"strconv"
)

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
func (i *Item) Add(group int, values ...int) { i.collect("a", group, values) }

// Try is Add for values that only help.
func (i *Item) Try(group int, values ...int) { i.collect("t", group, values) }

func (i *Item) collect(how string, number int, values []int) {
	if !i.batch.alone {
		i.line(how, number).numbers(values)
		return
	}
	g := i.batch.groups[number-1]
	if g.command == "ZREM" && !i.again {
		g.command = "leave" // which knows the sets that were empty
	}
	i.Do(g.command).Key(g.key).Value(values...)
}

// Last runs a command or a verb with a key, if it has one, and texts behind all items, once, if any of those with it is applied.
func (i *Item) Last(name string, key Key, texts ...string) { i.last(false, name, key, texts...) }

// Count is Last with how many items are applied that have it, behind the texts.
func (i *Item) Count(name string, key Key, texts ...string) { i.last(true, name, key, texts...) }

// final identifies a line that runs last.
type final struct {
	name  string
	key   Key
	texts []string
}

func (i *Item) last(counts bool, name string, key Key, texts ...string) {
	b := i.batch
	if b.alone {
		w := i.Help("last").Text(name)
		if key != "" {
			w.Key(key)
		}
		if w.Text(texts...); counts {
			w.Text("1")
		}
		return
	}
	number := slices.IndexFunc(b.finals, func(f final) bool { return f.name == name && f.key == key && slices.Equal(f.texts, texts) })
	if number < 0 {
		number = len(b.finals)
		b.finals = append(b.finals, final{name, key, texts})
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
