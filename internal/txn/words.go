package txn

import "strconv"

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

// Text adds words that are the same in all items of a template, and hold no control character: never what somebody else has
// written, which is a value, unless document.Shorten has made a line of it.
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
