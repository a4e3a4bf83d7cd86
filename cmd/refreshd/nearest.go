package main

import (
	"fmt"
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

// oneOfCommands refuses words behind a command that has commands of these names.
func oneOfCommands(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("%s: expected one of %s, found %q", command.Name(), strings.Join(names, ", "), args[0])
		if near := childNear(command, args); near != nil {
			text += "; nearest: " + near.CommandPath()
		}
		return usagef("%s", text)
	}
}

const maxNearest = 3

// unknownCommand names the commands that the words behind refreshd were most likely meant to be.
func unknownCommand(root *cobra.Command, args []string) error {
	var same, like []string
	parent := childNear(root, args[1:min(2, len(args))]) // list models
	eachPart(root, func(part *cobra.Command) {
		switch names := namesOf(part); {
		case parent != nil && parent != part.Parent():
		case slices.Contains(names, args[0]):
			same = append(same, part.CommandPath())
		case words.NearestWord(args[0], names) != "":
			like = append(like, part.CommandPath())
		}
	})
	nearest := same
	if near := childNear(root, args); nearest == nil && near != nil {
		nearest = []string{near.CommandPath()}
	} else if nearest == nil {
		nearest = like
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if len(nearest) > 0 {
		text += "; nearest: " + strings.Join(nearest[:min(len(nearest), maxNearest)], ", ")
	}
	return usagef("%s", text)
}

// eachPart visits the commands of commands, those of models first.
func eachPart(root *cobra.Command, visit func(*cobra.Command)) {
	for i := range groups {
		for _, command := range root.Commands() {
			if command.GroupID == groups[(i+1)%len(groups)].title {
				for _, part := range command.Commands() {
					visit(part)
				}
			}
		}
	}
}

// childNear is the command that words behind another one were most likely meant to be; nil: it has none like them.
func childNear(of *cobra.Command, args []string) (found *cobra.Command) {
	for _, word := range args {
		var names []string
		for _, command := range of.Commands() {
			names = append(names, namesOf(command)...)
		}
		nearest := words.NearestWord(word, names)
		at := slices.IndexFunc(of.Commands(), func(command *cobra.Command) bool { return nearest != "" && slices.Contains(namesOf(command), nearest) })
		if at < 0 {
			return found
		}
		of = of.Commands()[at]
		found = of
	}
	return found
}

func namesOf(command *cobra.Command) []string {
	return append([]string{command.Name()}, command.Aliases...)
}
