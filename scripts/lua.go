package scripts

import (
	"context"
	"embed"
	"errors"
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

// headerTypes stands in a script for the types of its keys, as its header has them.
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
			return strings.Replace(whole, headerTypes, typesOf(whole), 1), nil
		}
		name, behind, _ := strings.Cut(behind, "\n")
		if slices.Contains(included, name) {
			return "", fmt.Errorf("read script: expected each include once, found %s twice in %s", name, file)
		}
		included = append(included, name)
		part, err := fs.ReadFile(files, "include/"+name+".lua")
		if err != nil {
			return "", fmt.Errorf("read script: %w", err)
		}
		whole = before + string(part) + behind
	}
}

// typesOf are the types of the keys that a script has, each item's own aside, as a table of Lua.
func typesOf(text string) string {
	var a analysis
	a.readHeader(text)
	var types []string
	for _, key := range a.keys() {
		if !key.item && key.place > len(types) { // else it is another one that may stand there
			types = append(types, "'"+key.kind+"'")
		}
	}
	return "{" + strings.Join(types, ",\n  ") + "}"
}

// ErrNotLoaded says that Redis does not know the scripts, and that this user may not load them.
var ErrNotLoaded = errors.New("scripts are not loaded: is a dispatcher or a poller running?")

// run runs a script by its digest. When Redis does not know it, as after a restart, run loads all scripts and tries once more. The text
// never goes with a call (EVAL): a user who may run our scripts need not be one who may run any.
func run(ctx context.Context, client redis.UniversalClient, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	reply := client.EvalSha(ctx, script.Hash(), keys, args...)
	if !redis.HasErrorPrefix(reply.Err(), "NOSCRIPT") {
		return reply
	}
	if err := loadAll(ctx, client, keys[0]); err != nil {
		reply.SetErr(err)
		return reply
	}
	return client.EvalSha(ctx, script.Hash(), keys, args...)
}

// LoadScripts makes Redis know all scripts, also those that only others run. ErrNotLoaded: this user may not load any.
func (s *Store) LoadScripts(ctx context.Context) error {
	return loadAll(ctx, s.clients.Write, s.Keys.Due())
}

// loadAll loads all scripts where a key lives, also for users who may not do so themselves.
func loadAll(ctx context.Context, client redis.UniversalClient, key string) error {
	node, err := masterFor(ctx, client, key)
	if err != nil {
		return fmt.Errorf("find the node of the queue: %w", err)
	}
	for _, file := range slices.Sorted(maps.Keys(sources)) {
		switch err := node.ScriptLoad(ctx, sources[file]).Err(); {
		case Refused(err):
			return ErrNotLoaded
		case err != nil:
			return fmt.Errorf("load script %s: %w", file, err)
		}
	}
	return nil
}
