package scripts

import (
	"strconv"
	"strings"
)

// wording is what commit.lua is told of one item.
type wording struct {
	words     []byte   // of its kind, each behind a line break
	announced []any    // uid first, and then what the words announce, in the order of the header
	keys      []string // further ones, likewise
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

// wordings are what commit.lua is told of a batch.
type wordings struct {
	kinds map[string]int // number by words
	first []any          // the kinds in their order, each a list behind its length
	items []any
}

// add adds an item.
func (all *wordings) add(w wording) {
	number, known := all.kinds[string(w.words)]
	if !known {
		number = len(all.kinds) + 1
		words := string(w.words)
		all.kinds[words] = number
		list := strings.Split(words[1:], "\n")
		all.first = append(all.first, len(list))
		for _, word := range list {
			all.first = append(all.first, word)
		}
	}
	all.items = append(append(all.items, number), w.announced...)
}
