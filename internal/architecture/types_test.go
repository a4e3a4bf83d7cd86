package architecture

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	nodeExports   = regexp.MustCompile(`(?m)^module\.exports = \{ (.*) \};$`)
	typedClass    = regexp.MustCompile(`(?m)^export class (\w+)(?: extends \w+)? \{\n((?: .*\n)*)\}$`)
	typedMember   = regexp.MustCompile(`(?m)^  (?:readonly )?(\w+)[(:]`)
	typedFunction = regexp.MustCompile(`(?m)^export (?:function|const) (\w+)[(:]`)
	nodeClass     = regexp.MustCompile(`(?m)^class (\w+)(?: extends \w+)? \{\n((?: .*\n|\n)*)\}$`)
	nodeMember    = regexp.MustCompile(`(?m)^  (?:async |get )?([a-z]\w*)\(|^    this\.(\w+) = `)
)

// TestTheTypesOfTheNodeClientAreThoseOfItsExports compares by text, as nobody has to have a compiler of TypeScript.
func TestTheTypesOfTheNodeClientAreThoseOfItsExports(t *testing.T) {
	dir := filepath.Join("..", "..", "clients", "node")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return string(text)
	}
	var published struct {
		Main, Types string
		Files       []string
	}
	if err := json.Unmarshal([]byte(read("package.json")), &published); err != nil || !slices.Contains(published.Files, published.Types) {
		t.Fatalf("expected package.json to publish the types that it names, found %+v, %v", published, err)
	}
	code, types := read(published.Main), read(published.Types)
	has := map[string][]string{}
	for _, class := range nodeClass.FindAllStringSubmatch(code, -1) {
		for _, member := range nodeMember.FindAllStringSubmatch(class[2], -1) {
			has[class[1]] = append(has[class[1]], member[1]+member[2])
		}
	}
	var typed []string
	for _, class := range typedClass.FindAllStringSubmatch(types, -1) {
		typed = append(typed, class[1])
		for _, member := range typedMember.FindAllStringSubmatch(class[2], -1) {
			failIf(t, !slices.Contains(has[class[1]], member[1]) && member[1] != "constructor",
				"%s.%s: expected it in %s, found %s", class[1], member[1], published.Main, strings.Join(has[class[1]], ", "))
		}
	}
	for _, function := range typedFunction.FindAllStringSubmatch(types, -1) {
		typed = append(typed, function[1])
	}
	slices.Sort(typed)
	equal(t, strings.Split(nodeExports.FindStringSubmatch(code)[1], ", "), typed)
}
