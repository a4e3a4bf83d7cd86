package store

import (
	"strconv"
	"strings"
)

// wording is what commit.lua is told of one item, behind what it was told of those before.
type wording struct {
	words     []byte   // of its kind, each behind a line break
	announced []any    // of all items: the number of the kind, uid, and then what the words announce, in the order of the header
	keys      []string // further ones, likewise, of this item
}

// say adds a word, in two parts.
func (w *wording) say(word, of string) {
	w.words = append(append(append(w.words, '\n'), word...), of...)
}

// announce adds values.
func (w *wording) announce(values ...string) {
	for _, value := range values {
		w.announced = append(w.announced, value)
	}
}

// tell adds a word and the value that it announces; without a value, neither.
func (w *wording) tell(word, value string) {
	if value != "" {
		w.say(word, "")
		w.announced = append(w.announced, value)
	}
}

// list adds a word and the list that it announces; without one, neither.
func (w *wording) list(word string, values []string) {
	if len(values) > 0 {
		w.say(word, "")
		w.announce(strconv.Itoa(len(values)))
		w.announce(values...)
	}
}

// wordings are what commit.lua is told of a batch. What is told of an item goes where it is sent from: a batch has hundreds.
type wordings struct {
	wording
	kinds map[string]int // number by words
	first []any          // the kinds in their order, each a list behind its length
}

// item has an item told of.
func (all *wordings) item(tell func(*wording)) {
	at := len(all.announced)
	all.words, all.keys, all.announced = all.words[:0], all.keys[:0], append(all.announced, nil)
	tell(&all.wording)
	all.announced[at] = all.kind()
}

// kind is the number of the kind of the item in hand.
func (all *wordings) kind() int {
	number, known := all.kinds[string(all.words)]
	if known {
		return number
	}
	number, words := len(all.kinds)+1, string(all.words)
	all.kinds[words] = number
	list := strings.Split(words[1:], "\n")
	all.first = append(all.first, len(list))
	for _, word := range list {
		all.first = append(all.first, word)
	}
	return number
}
