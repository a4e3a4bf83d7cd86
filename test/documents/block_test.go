package documents

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var update = flag.Bool("update", false, "write what commands print into the pages")

const root = "../.."

type block struct {
	line     int // of its first line of text, from 1
	fence    string
	marker   string // the comment right above its fence
	lines    []string
	indented bool
}

// step is a command of a block, with the output below it.
type step struct {
	command string
	output  []string
	at      int // index of the first line behind the command in the lines of the block
}

var (
	fenced = regexp.MustCompile("^```([a-z]*)")
	marker = regexp.MustCompile(`^<!-- (.*) -->$`)
	list   = regexp.MustCompile(`^\s*([*-]|\d+\.) `)
)

func read(t testing.TB, page string) (lines []string, blocks []*block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return lines, split(lines)
}

func split(lines []string) (blocks []*block) {
	var open *block
	inList := false
	for i, line := range lines {
		fence := fenced.FindStringSubmatch(line)
		before := ""
		if i > 0 {
			before = lines[i-1]
		}
		switch {
		case open != nil && !open.indented && strings.HasPrefix(line, "```"):
			open = nil
		case open != nil && !open.indented:
			open.lines = append(open.lines, line)
		case fence != nil:
			open = &block{line: i + 2, fence: fence[1]}
			if above := marker.FindStringSubmatch(before); above != nil {
				open.marker = above[1]
			}
			blocks = append(blocks, open)
		case strings.HasPrefix(line, "    ") && !inList && (open != nil || before == ""):
			if open == nil {
				open = &block{line: i + 1, indented: true}
				blocks = append(blocks, open)
			}
			open.lines = append(open.lines, line[4:])
		default:
			open = nil
			if line != "" {
				inList = list.MatchString(line) || inList && strings.HasPrefix(line, " ")
			}
		}
	}
	return blocks
}

// steps are the commands of a block, each behind a "$ ". One that ends with a backslash, or within quotes, goes on.
func (b *block) steps() (steps []step) {
	for i := 0; i < len(b.lines); i++ {
		command, is := strings.CutPrefix(b.lines[i], "$ ")
		if !is {
			last := &steps[len(steps)-1]
			last.output = append(last.output, b.lines[i])
			continue
		}
		for strings.HasSuffix(command, "\\") || strings.Count(command, "'")%2 == 1 {
			i++
			command += "\n" + b.lines[i]
		}
		steps = append(steps, step{command: command, at: i + 1})
	}
	return steps
}

// asks reports whether the commands of a block are behind a "$ ", with their output below them.
func (b *block) asks() bool { return len(b.lines) > 0 && strings.HasPrefix(b.lines[0], "$ ") }

// printed replaces the output below a command, from the last to the first of a page.
func printed(lines []string, b *block, s step, got []string) []string {
	from := b.line - 1 + s.at
	rest := append([]string{}, lines[from+len(s.output):]...)
	return append(append(lines[:from:from], got...), rest...)
}

func save(t testing.TB, page string, lines []string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, page), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// program writes a shell script that replaces a program of a page.
func program(t testing.TB, dir, name, text string) {
	t.Helper()
	syscall.ForkLock.RLock() // a child of another test would hold the file open for writing, and nobody could run it
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
}
