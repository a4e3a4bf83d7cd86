package check

import (
	"strings"
	"sync"
)

// Buffer is a text that may be read while somebody writes.
type Buffer struct {
	Written func() // called after each write; nil: nothing is. Set it before the first.

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// Write appends to the text.
func (b *Buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	n, err := b.text.Write(text)
	b.mu.Unlock()
	if b.Written != nil {
		b.Written()
	}
	return n, err
}

// String returns the text so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Lines is a log whose lines can be received, for tests that wait until something has been logged. A line is dropped when
// nobody is ready to receive it and the channel is full.
type Lines chan string

// Write sends the line, if there is room.
func (l Lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}
