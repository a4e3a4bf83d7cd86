package model

import (
	"encoding/json"
	"sync"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// inline is a policy inside a definition, as it was read and as it is stored. It never changes: definitions with the same bytes share it.
type inline struct {
	draft      *policy.Draft
	policy     *policy.Policy // the draft completed
	name, text string         // of its content, and its canonical JSON
	usual      string         // the text that completed it
}

var builtIn = textOf(policy.Default())

func textOf(p policy.Policy) string {
	text, _ := json.Marshal(p) // a policy always marshals
	return string(text)
}

func readInline(value any) (*inline, error) {
	draft, err := policy.Read(value)
	if name := draft.Name(); err == nil && name != "" {
		err = document.Refuse("name", "a policy without name, or the name alone of a stored one", document.Found(name))
	}
	if err != nil {
		return nil, err
	}
	return completeInline(&draft, policy.Default(), builtIn)
}

func completeInline(draft *policy.Draft, usual policy.Policy, usualText string) (*inline, error) {
	p, name, text, err := draft.CompleteInline(usual)
	return &inline{draft, &p, name, text, usualText}, err
}

// inlines remembers policies by their bytes, as thousands of models bring the same one.
type inlines struct {
	mu               sync.Mutex
	recent, previous map[string]*inline // guarded by mu
	bytes            int                // of recent, about; guarded by mu
}

// remembered is shared by all readers of definitions.
var remembered inlines

// maxGeneration bounds each of the two maps, in bytes: some hundred policies at least, and some thousand of the usual size.
const maxGeneration = 2 << 20

// read reads a policy that is written as a JSON object. A refused one is not remembered.
func (m *inlines) read(written json.RawMessage) (*inline, error) {
	m.mu.Lock()
	known := m.recent[string(written)]
	if known == nil {
		if known = m.previous[string(written)]; known != nil {
			m.keep(string(written), known)
		}
	}
	m.mu.Unlock()
	if known != nil {
		return known, nil
	}
	value, _ := document.Decode(written) // it is a part of a decoded value
	read, err := readInline(value)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(string(written), read)
	}
	return read, err
}

// keep needs mu.
func (m *inlines) keep(written string, read *inline) {
	size := 2*len(written) + 2*len(read.text) + 2_000 + read.policy.CompiledSize() // about: the texts, the read policy, and the entry of the map
	if m.bytes += size; m.bytes > maxGeneration || m.recent == nil {
		m.previous, m.recent, m.bytes = m.recent, make(map[string]*inline), size
	}
	m.recent[written] = read
}
