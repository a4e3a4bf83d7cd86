// Package scripts holds the Lua scripts that Redis runs, and what their headers declare.
package scripts

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

//go:embed *.lua include/*.lua
var luaFiles embed.FS

// sources are the texts of all scripts, by their file.
var sources = resolveAll(luaFiles)

// Sources returns the scripts as Redis runs them, includes and all, by the names of their files.
func Sources() map[string]string { return maps.Clone(sources) }

// Source returns the script of a file, as Redis runs it. It panics when there is none: no test would pass.
func Source(file string) string {
	text, known := sources[file]
	if !known {
		panic("expected the file of a script, found " + file)
	}
	return text
}

// resolveAll panics when an include is missing.
func resolveAll(files fs.FS) map[string]string {
	names, _ := fs.Glob(files, "*.lua") // the pattern is well-formed
	all := make(map[string]string, len(names))
	for _, name := range names {
		text, err := resolve(files, name)
		if err != nil {
			panic(err)
		}
		all[name] = text
	}
	return all
}

// includeMark begins a line that includes files of the directory include, in their order.
const includeMark = "-- include: "

// headerTypes is replaced in a script by the types of its keys in the header.
const headerTypes = "header_types"

// resolve reads a file with its includes in place, and the types of its keys.
func resolve(files fs.FS, file string) (string, error) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return "", fmt.Errorf("read script: %w", err)
	}
	var included []string
	whole := string(text)
	for {
		before, behind, found := strings.Cut(whole, includeMark)
		if !found {
			var types []string // of the keys that the script has, each item's own aside
			for _, key := range ReadHeader(whole).Keys() {
				if !key.Item && key.Place > len(types) { // else it is an alternative
					types = append(types, "'"+key.Type+"'")
				}
			}
			return strings.Replace(whole, headerTypes, "{"+strings.Join(types, ",\n  ")+"}", 1), nil
		}
		names, behind, _ := strings.Cut(behind, "\n")
		for name := range strings.SplitSeq(names, ", ") {
			if slices.Contains(included, name) {
				return "", fmt.Errorf("read script: expected each include once, found %s twice in %s", name, file)
			}
			included = append(included, name)
			part, err := fs.ReadFile(files, "include/"+name+".lua")
			if err != nil {
				return "", fmt.Errorf("read script: %w", err)
			}
			before += string(part)
		}
		whole = before + behind
	}
}
