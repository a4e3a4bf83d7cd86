package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/words"
)

const variablePrefix = "REFRESHD_"

func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func (a *app) getenv(name string) string {
	for _, set := range slices.Backward(a.environ) {
		if text, is := strings.CutPrefix(set, name+"="); is {
			return text
		}
	}
	return ""
}

// noSettings matches variables that are not settings: Kubernetes sets them for a service called refreshd, a worker for the program of --exec,
// and tests for themselves.
var noSettings = regexp.MustCompile(`^((\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)` +
	`|UID|ATTEMPT_UID|ATTEMPT_NO|DEADLINE_AT|PLANNED_AT|PAYLOAD_\w+|LONG)$`)

// warnOfUnknownVariables warns of variables that look like settings. It refuses none, because an environment is shared.
func (a *app) warnOfUnknownVariables(root *cobra.Command) {
	if !slices.ContainsFunc(a.environ, func(set string) bool { return strings.HasPrefix(set, variablePrefix) }) {
		return
	}
	var known []string
	for flag, is := range knownFlags(root) {
		if is || flag == "config" {
			known = append(known, strings.TrimPrefix(variable(flag), variablePrefix))
		}
	}
	slices.Sort(known)
	for _, set := range a.environ {
		variable, _, _ := strings.Cut(set, "=")
		name, ours := strings.CutPrefix(variable, variablePrefix)
		if !ours || slices.Contains(known, name) || noSettings.MatchString(name) {
			continue
		}
		line := a.log.Warn().Str("variable", variable)
		if nearest := words.NearestWord(name, known); nearest != "" {
			line = line.Str("nearest", variablePrefix+nearest)
		}
		line.Msg("no setting has this name")
	}
}

// setting is the text of a flag and where it was found; where is empty if it was not.
type setting struct{ text, where string }

// settle sets each flag from the command line, or else its environment variable, the --config file, or its default.
func (a *app) settle(command *cobra.Command) error {
	var file map[string]setting
	settle := func(flag *pflag.Flag) error {
		if flag.Changed || flag.Name == "help" || flag.Name == "version" {
			return nil
		}
		found := a.fromEnv(flag.Name)
		if found.where == "" {
			found = file[flag.Name]
		}
		if found.where != "" && flag.Value.Set(found.text) != nil {
			return refusedValue(found.where, flag, found.text)
		}
		return nil
	}
	err := settle(command.Flags().Lookup("config"))
	if err == nil {
		file, err = readSettings(a.file, command.Root())
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if err == nil && flag.Name != "config" {
			err = settle(flag)
		}
	})
	if err == nil {
		err = a.useQueues()
	}
	return err
}

// fromEnv reads a flag from the environment. An empty variable counts as unset: compose files leave one out like this.
func (a *app) fromEnv(flag string) setting {
	names := []string{variable(flag)}
	if flag == "redis" {
		names = append(names, "REDIS_URL")
	}
	for _, name := range names {
		text := a.getenv(name)
		if linked := flag == "port" && strings.Contains(text, "://"); linked { // by Kubernetes, to a service called refreshd
			continue
		}
		if text != "" {
			return setting{text, name}
		}
	}
	return setting{}
}

// origin names where a flag that is set was found.
func (a *app) origin(flag *pflag.Flag) string {
	if flag.Changed {
		return "--" + flag.Name
	}
	return cmp.Or(a.fromEnv(flag.Name).where, a.file)
}

// readSettings reads a configuration file. One file may serve all commands, so the flags of all are known keys.
func readSettings(path string, root *cobra.Command) (map[string]setting, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--config: %w", err)
	}
	var file yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&file); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, usagef("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, usagef("%s: expected one YAML document, found more behind it", path)
	}
	switch top := file.Content[0]; {
	case isNull(top): // nothing but comments
		return nil, nil
	case top.Kind != yaml.MappingNode:
		return nil, usagef("%s line %d: expected lines such as \"queue: bigtables\", found something else", path, top.Line)
	}
	settings, known, lines := make(map[string]setting), knownFlags(root), file.Content[0].Content
	for i := 0; i+1 < len(lines); i += 2 {
		key, value := lines[i], lines[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		where := fmt.Sprintf("%s line %d: %s", path, key.Line, document.Found(key.Value))
		switch {
		case !known[key.Value]:
			return nil, usagef("%s: expected the name of a flag without its dashes (refreshd --help lists them), found an unknown key", where)
		case settings[key.Value].where != "":
			return nil, usagef("%s: expected each key once, found it again", where)
		case value.Kind != yaml.ScalarNode || isNull(value):
			return nil, usagef("%s: expected one value, found none or several", where)
		}
		settings[key.Value] = setting{value.Value, fmt.Sprintf("%s line %d: %s", path, value.Line, key.Value)}
	}
	return settings, nil
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// knownFlags are the flags of a command and those below it, and whether a file may set them.
func knownFlags(command *cobra.Command) map[string]bool {
	known := make(map[string]bool)
	note := func(flag *pflag.Flag) {
		known[flag.Name] = flag.Name != "config" && flag.Name != "help" && flag.Name != "version"
	}
	command.LocalFlags().VisitAll(note)
	for _, child := range command.Commands() {
		maps.Copy(known, knownFlags(child))
	}
	return known
}

// refusedValue is the error of a flag with a wrong text, without the words of its parser.
func refusedValue(where string, flag *pflag.Flag, text string) error {
	wants := map[string]string{
		"int": "a whole number", "int64": "a whole number", "bool": "true or false",
		"duration": "a duration such as 500ms, 30s or 1h",
	}
	kind := flag.Value.Type()
	want := cmp.Or(wants[kind], "a "+kind)
	if own, is := flag.Value.(interface{ want(text string) string }); is {
		want = own.want(text)
	}
	return usagef("%s: expected %s, found %s", where, want, document.Found(text))
}

// duration is a flag in the forms of policies: 90s, 1h 30m, 2 days, PT5M.
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

// count is a flag with a number of at least one. The variable holds 0 for the default, which the help text names.
type count[T int | int64] struct {
	value *T
	wants string // the range, as in "1 to 1000"
}

func (c count[T]) Set(text string) error {
	number, err := strconv.ParseInt(text, 0, strconv.IntSize)
	if err == nil && number < 1 {
		err = strconv.ErrRange
	}
	if err == nil {
		*c.value = T(number)
	}
	return err
}

// String is "0" for none, which the help text then leaves out as a default.
func (c count[T]) String() string {
	if c.value == nil {
		return "0"
	}
	return strconv.FormatInt(int64(*c.value), 10)
}

func (c count[T]) Type() string { return "int" }

// want describes the expected value.
func (c count[T]) want(text string) string {
	if _, err := strconv.ParseInt(text, 0, strconv.IntSize); err == nil {
		return c.wants
	}
	return "a whole number"
}
