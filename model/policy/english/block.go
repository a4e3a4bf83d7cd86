package english

// block is what stands below a sentence that ends with a colon.
type block struct {
	heading level
	entered bool // a sentence of it was read
	flat    bool // its sentences stand at the level of the heading, so that only another sentence ends it
}

// openBlock lets the following actions belong to the sentence at hand, if it ends with a colon.
func (d *draft) openBlock() {
	if d.now.opens {
		d.block = block{heading: d.now.level}
		return
	}
	d.closeBlock()
}

func (d *draft) closeBlock() { d.at, d.inWindow = nil, false }

// inBlock reports whether a sentence stands below the heading of an open block. The first one after the heading always does.
func (d *draft) inBlock(s *sentence) bool {
	if d.at == nil && !d.inWindow {
		return false
	}
	same := s.level == d.block.heading
	if !d.block.entered {
		d.block.entered, d.block.flat = true, same
	}
	return s.level.indent >= d.block.heading.indent && (d.block.flat || !same)
}
