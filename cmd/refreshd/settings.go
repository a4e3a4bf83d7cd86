package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/refreshd/refreshd/model/document"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// duration is a flag in the forms that policies use: 90s, 1h 30m, 2 days, PT5M.
type duration time.Duration

func (d *duration) Set(text string) error {
	parsed, err := document.ParseDuration(text)
	*d = duration(parsed)
	return err
}

// String is "0" for none, which the help text then leaves out as a default.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return document.FormatDuration(time.Duration(*d))
}

func (d *duration) Type() string { return "duration" }

// envPrefix stands before the name of a flag in the environment.
const envPrefix = "REFRESHD_"

// settle gives each flag that the command line left open its value from the environment or else from the file.
func (a *app) settle(command *cobra.Command) error {
	if text, where, found := a.fromEnv("config"); found && !command.Flags().Changed("config") {
		if err := set(command.Flags().Lookup("config"), text, where); err != nil {
			return err
		}
	}
	file, err := readSettings(a.config, command.Root())
	if err != nil {
		return err
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if err != nil || flag.Changed || flag.Name == "help" {
			return
		}
		text, where, found := a.fromEnv(flag.Name)
		if !found {
			text, where, found = file.find(flag.Name)
		}
		if found {
			err = set(flag, text, where)
		}
	})
	return err
}

// fromEnv finds a flag in the environment. An empty variable counts as none: that is how compose files leave one out.
func (a *app) fromEnv(flag string) (text, where string, found bool) {
	names := []string{envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
	if flag == "redis" {
		names = append(names, "REDIS_URL")
	}
	for _, name := range names {
		if text, _ := a.lookupEnv(name); text != "" {
			return text, name, true
		}
	}
	return "", "", false
}

func set(flag *pflag.Flag, text, where string) error {
	if err := flag.Value.Set(text); err != nil {
		return refusedValue(where, flag, text)
	}
	return nil
}

func refusedValue(where string, flag *pflag.Flag, text string) error {
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "bool": "true or false",
		"duration": "a duration such as 500ms, 30s or 1h",
	}[flag.Value.Type()]
	if want == "" {
		want = "a " + flag.Value.Type()
	}
	return usagef("%s: expected %s, found %s", where, want, document.Found(text))
}

// settings are the lines of a configuration file.
type settings struct {
	path   string
	values map[string]*yaml.Node
}

func (s settings) find(flag string) (text, where string, found bool) {
	node, found := s.values[flag]
	if !found {
		return "", "", false
	}
	return node.Value, fmt.Sprintf("%s line %d: %s", s.path, node.Line, flag), true
}

// readSettings reads a configuration file. One file may serve all commands, so each flag of each of them is a known key.
func readSettings(path string, root *cobra.Command) (settings, error) {
	file := settings{path, make(map[string]*yaml.Node)}
	if path == "" {
		return file, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return file, usagef("--config: %w", err)
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return file, nil
	} else if err != nil {
		return file, usagef("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return file, usagef("%s: expected one YAML document, found more behind it", path)
	}
	return file, file.read(document.Content[0], knownFlags(root))
}

func (s settings) read(node *yaml.Node, known map[string]bool) error {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return nil // nothing but comments
	}
	if node.Kind != yaml.MappingNode {
		return usagef("%s line %d: expected lines such as \"queue: bigtables\", found something else", s.path, node.Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		where := fmt.Sprintf("%s line %d: %s", s.path, key.Line, document.Found(key.Value))
		switch {
		case !known[key.Value]:
			return usagef("%s: expected the name of a flag without its dashes (refreshd --help lists them), found an unknown key", where)
		case s.values[key.Value] != nil:
			return usagef("%s: expected each key once, found it again", where)
		case value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null":
			return usagef("%s: expected one value, found none or several", where)
		}
		s.values[key.Value] = value
	}
	return nil
}

// knownFlags are the names of all flags of all commands.
func knownFlags(command *cobra.Command) map[string]bool {
	known := make(map[string]bool)
	note := func(flag *pflag.Flag) { known[flag.Name] = flag.Name != "config" && flag.Name != "help" }
	command.PersistentFlags().VisitAll(note)
	command.LocalFlags().VisitAll(note)
	for _, child := range command.Commands() {
		for name := range knownFlags(child) {
			known[name] = known[name] || name != "config" && name != "help"
		}
	}
	return known
}
