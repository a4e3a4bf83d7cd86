package scripts

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua include/*.lua
var luaFiles embed.FS

// sources are the texts of all scripts that were loaded, by their file.
var sources = map[string]string{}

// Sources returns the scripts as Redis runs them, includes and all, by the names of their files.
func Sources() map[string]string { return maps.Clone(sources) }

// includeMark begins a line that stands for a file of the directory include.
const includeMark = "-- include: "

// load returns the script of a file. It panics when the file, or what it includes, is missing: no test of the package would pass.
func load(file string) *redis.Script {
	text, err := resolve(luaFiles, file)
	if err != nil {
		panic(err)
	}
	sources[file] = text
	return redis.NewScript(text)
}

// resolve reads a file with its includes in place. An include includes nothing.
func resolve(files fs.FS, file string) (string, error) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return "", fmt.Errorf("read script: %w", err)
	}
	var out strings.Builder
	var included []string
	for line := range strings.Lines(string(text)) {
		name, is := strings.CutPrefix(strings.TrimSpace(line), includeMark)
		if !is {
			out.WriteString(line)
			continue
		}
		if slices.Contains(included, name) {
			return "", fmt.Errorf("read script: expected each include once, found %s twice in %s", name, file)
		}
		included = append(included, name)
		part, err := fs.ReadFile(files, "include/"+name+".lua")
		if err != nil {
			return "", fmt.Errorf("read script: %w", err)
		}
		out.Write(part)
	}
	return out.String(), nil
}
