package architecture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/refreshd/refreshd/"

// counted are the packages in which a journey is followed; what they call in others only answers.
var counted = []string{"dispatcher", "poller", "internal/store", "internal/redis", "model"}

type function struct {
	name, file string
	body       *ast.BlockStmt
	info       *types.Info
}

type code struct {
	functions map[string]*function   // by the full name that go/types gives them
	methods   map[string][]*function // by their bare name, for calls through an interface
}

// readCode checks the types of the counted packages against what the compiler has exported of those that they import.
func readCode(t *testing.T) code {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./dispatcher", "./poller")
	list.Dir = "../.."
	out, err := list.Output()
	must(t, err)
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var listed struct{ ImportPath, Export string }
		must(t, decoder.Decode(&listed))
		exports[listed.ImportPath] = listed.Export
	}
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })}
	c := code{map[string]*function{}, map[string][]*function{}}
	for _, folder := range counted {
		var sources []*ast.File
		for _, f := range repository(t) {
			if path.Dir(f.path) == folder && f.syntax != nil && !f.isTest() {
				sources = append(sources, f.syntax)
			}
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		_, err := config.Check(module+folder, positions, sources, info)
		stopIf(t, err != nil, "%v", err)
		for _, source := range sources {
			for _, d := range (file{syntax: source}).functions() {
				f := &function{source.Name.Name + "." + nameOf(d), positions.Position(d.Pos()).Filename, d.Body, info}
				c.functions[info.Defs[d.Name].(*types.Func).FullName()] = f
				if d.Recv != nil {
					c.methods[d.Name.Name] = append(c.methods[d.Name.Name], f)
				}
			}
		}
	}
	return c
}

// block is a stretch of a file: from line and column to line and column.
type block [4]int

// blocks are those that a journey has run, by file.
type blocks map[string][]block

// blocksSince returns what ran more often in one coverage profile than in the one before it. A line of them is such as
// "module/poller/round.go:28.83,31.16 4 1": the last number is how often.
func blocksSince(before, after string) blocks {
	earlier, ran := runsOf(before), blocks{}
	for place, runs := range runsOf(after) {
		name, span, _ := strings.Cut(strings.TrimPrefix(place, module), ":")
		var b block
		if _, err := fmt.Sscanf(span, "%d.%d,%d.%d", &b[0], &b[1], &b[2], &b[3]); err == nil && runs > earlier[place] {
			ran[name] = append(ran[name], b)
		}
	}
	return ran
}

func runsOf(profile string) map[string]int {
	runs := map[string]int{}
	for scanner := bufio.NewScanner(strings.NewReader(profile)); scanner.Scan(); {
		if fields := strings.Fields(scanner.Text()); len(fields) == 3 {
			count, _ := strconv.Atoi(fields[2])
			runs[fields[0]] += count
		}
	}
	return runs
}

// ran reports whether a place of a file was run.
func (b blocks) ran(file string, at token.Pos) bool {
	p := positions.Position(at)
	return slices.ContainsFunc(b[file], func(b block) bool {
		after := p.Line > b[0] || p.Line == b[0] && p.Column >= b[1]
		return after && (p.Line < b[2] || p.Line == b[2] && p.Column <= b[3])
	})
}

// calls returns the counted functions that a function has called, in the order in which its text names them.
func (c code) calls(f *function, ran blocks) (called []*function) {
	ast.Inspect(f.body, func(n ast.Node) bool {
		name, is := n.(*ast.Ident)
		if !is || !ran.ran(f.file, name.Pos()) {
			return true
		}
		object, is := f.info.Uses[name].(*types.Func)
		if !is {
			return true
		}
		object = object.Origin()
		targets := []*function{c.functions[object.FullName()]}
		if receiver := object.Signature().Recv(); receiver != nil && types.IsInterface(receiver.Type()) {
			targets = c.methods[object.Name()]
		}
		for _, target := range targets {
			if target != nil && target != f && ran.ran(target.file, target.body.Lbrace) {
				called = append(called, target)
			}
		}
		return true
	})
	return called
}

// journey is what a reader comes by who follows the calls of a run. A function that only answers, as it calls no counted function or only such as
// call none, is understood where it is called. All others are read once, where they are called first; functions of one file that follow each other
// are one stay.
type journey struct {
	path  []string // functions
	stays int
	files map[string]bool
}

func (c code) follow(start string, ran blocks) journey {
	depths := map[*function]int{}
	var depth func(*function) int
	depth = func(f *function) int {
		if known, is := depths[f]; is {
			return known
		}
		depths[f] = 0
		deepest := 0
		for _, called := range c.calls(f, ran) {
			deepest = max(deepest, 1+depth(called))
		}
		depths[f] = deepest
		return deepest
	}
	j, seen, last := journey{files: map[string]bool{}}, map[*function]bool{}, ""
	var visit func(*function)
	visit = func(f *function) {
		if seen[f] || depth(f) < 2 {
			return
		}
		seen[f] = true
		j.path, j.files[f.file] = append(j.path, f.name), true
		if f.file != last {
			j.stays++
			last = f.file
		}
		for _, called := range c.calls(f, ran) {
			visit(called)
		}
	}
	for _, f := range c.functions {
		if f.name == start {
			visit(f)
		}
	}
	return j
}
