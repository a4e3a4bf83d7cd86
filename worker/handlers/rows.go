package handlers

// rowCount counts the rows of a CSV that is written to it, in constant memory. Rows are the records after the first, which
// is the header; blank lines are none, and a line break inside quotes ends none. Anything with a NUL in it is no CSV. One
// goroutine only.
type rowCount struct {
	records int64
	filled  bool // whether the record being read has anything in it
	inside  bool // of a quoted field
	closed  bool // whether the byte before was the quote that closed a field
	starts  bool // whether the byte before was a separator
	binary  bool
}

func (c *rowCount) Write(p []byte) (int, error) {
	for _, b := range p {
		c.read(b)
	}
	return len(p), nil
}

func (c *rowCount) read(b byte) {
	closed := c.closed
	c.closed = false
	switch {
	case b == '"' && c.inside:
		c.inside, c.closed = false, true
	case b == '"':
		// A quote in the middle of a text, as in 5", opens nothing; the second of two in a quoted field opens it again.
		c.inside = closed || c.starts || !c.filled
		c.filled = true
	case b == '\n' && !c.inside:
		c.end()
	case b == 0:
		c.binary = true
	case b != '\r' && b != '\n':
		c.filled = true
	}
	c.starts = b == ',' || b == ';' || b == '\t' || b == '|'
}

func (c *rowCount) end() {
	if c.filled {
		c.records++
	}
	c.filled = false
}

// rows is what has been counted, the last line included; false: it is no CSV.
func (c *rowCount) rows() (int64, bool) {
	c.end()
	return max(0, c.records-1), !c.binary
}
