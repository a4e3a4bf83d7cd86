package architecture

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// limits say how large each kind of thing may get before a reader loses sight of it.
var limits = map[string]int{
	"Go files without tests in %s": 40,
	"exported methods of %s":       40,
	"lines of the include %s":      100,
	"lines of the script %s":       150,
	"lines of %s":                  400,
	"rows of %s":                   200,
}

// tooLarge are the things that are above their limit, and how large they are allowed to be until they are split. A row goes as soon as its thing
// is within the limit; none is added.
var tooLarge = map[string]int{}

func TestNothingGrowsTooLargeToBeRead(t *testing.T) {
	sizes := sizesOf(repository(t))
	sizes["rows of %s"] = map[string]int{"docs/glossary.md": len(row.FindAllString(document(t, "glossary.md"), -1)) - 1} // without the head
	report(t, outgrown(sizes, tooLarge))
}

// sizesOf measures what limits has a row for: kind -> thing -> size.
func sizesOf(files []file) map[string]map[string]int {
	sizes := map[string]map[string]int{}
	for kind := range limits {
		sizes[kind] = map[string]int{}
	}
	for _, f := range files {
		folder, lines := path.Dir(f.path), strings.Count(f.text, "\n")
		switch {
		case f.isLua() && path.Base(folder) == "include":
			sizes["lines of the include %s"][f.path] = lines
		case f.isLua():
			sizes["lines of the script %s"][f.path] = lines
		default:
			sizes["lines of %s"][f.path] = lines
		}
		if f.isLua() || f.isTest() {
			continue
		}
		sizes["Go files without tests in %s"][folder]++
		for _, method := range f.functions() {
			if method.Recv != nil && method.Name.IsExported() {
				sizes["exported methods of %s"][folder+"."+receiverOf(method)]++
			}
		}
	}
	return sizes
}

// outgrown returns one line for each thing above its limit or its allowance, and for each allowance that is not needed any more.
func outgrown(sizes map[string]map[string]int, allowed map[string]int) (places []string) {
	needed := map[string]bool{}
	for kind, limit := range limits {
		for thing, size := range sizes[kind] {
			name := fmt.Sprintf(kind, thing)
			needed[name] = size > limit
			if size > max(limit, allowed[name]) {
				places = append(places, fmt.Sprintf("%s: expected at most %d, found %d", name, max(limit, allowed[name]), size))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if !needed[name] {
			places = append(places, name+" is within its limit: remove its row of tooLarge")
		}
	}
	slices.Sort(places)
	return places
}
