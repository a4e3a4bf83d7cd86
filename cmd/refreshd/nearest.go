package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/model/words"
)

// aliases are the names that other programs have for a command.
var aliases = map[string][]string{
	"ls": {"list"}, "get": {"show", "inspect"}, "show": {"get", "inspect"}, "rm": {"delete", "remove"}, "drop": {"rm", "delete", "remove"},
}

func addAliases(of *cobra.Command) {
	for _, command := range of.Commands() {
		command.Aliases = aliases[command.Name()]
		addAliases(command)
	}
}

func namesOf(command *cobra.Command) []string {
	return append([]string{command.Name()}, command.Aliases...)
}

// oneOfCommands refuses words behind a command that has commands of these names.
func oneOfCommands(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		nearest := ""
		if near := childNear(command, args); near != nil {
			nearest = "; nearest: " + near.CommandPath()
		}
		return usagef("%s: expected one of %s, found %q%s", command.Name(), strings.Join(names, ", "), args[0], nearest)
	}
}

// unknownCommand names the commands that the words behind refreshd were most likely meant to be.
func unknownCommand(root *cobra.Command, args []string) error {
	parts := make(map[string][]string)                   // the paths of commands of commands, by their names
	parent := childNear(root, args[1:min(2, len(args))]) // list models
	for _, of := range root.Commands() {
		for _, part := range of.Commands() {
			for _, name := range namesOf(part) {
				if parent == nil || parent == of {
					parts[name] = append(parts[name], part.CommandPath())
				}
			}
		}
	}
	nearest, near := parts[args[0]], childNear(root, args)
	switch {
	case nearest == nil && near != nil:
		nearest = []string{near.CommandPath()}
	case nearest == nil:
		nearest = parts[words.NearestWord(args[0], slices.Sorted(maps.Keys(parts)))]
	}
	slices.SortStableFunc(nearest, func(a, b string) int { return strings.Count(b, " model ") - strings.Count(a, " model ") })
	text := "; nearest: " + strings.Join(nearest[:min(len(nearest), 3)], ", ")
	return usagef("unknown command %q%s", args[0], strings.TrimSuffix(text, "; nearest: "))
}

// childNear is the command that words behind another one were most likely meant to be; nil: it has none like them.
func childNear(of *cobra.Command, args []string) (found *cobra.Command) {
	for _, word := range args {
		named := make(map[string]*cobra.Command)
		for _, command := range of.Commands() {
			for _, name := range namesOf(command) {
				named[name] = command
			}
		}
		if of = named[words.NearestWord(word, slices.Sorted(maps.Keys(named)))]; of == nil {
			break
		}
		found = of
	}
	return found
}
