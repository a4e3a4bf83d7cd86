package main

import (
	"slices"

	"github.com/spf13/cobra"
)

// groups are the commands by what one wants of them, in the order of the help.
var groups = []struct {
	title    string
	commands []string
}{
	{"Run it", []string{"demo", "up", "dispatcher", "poller", "worker", "notifier", "dashboard"}},
	{"Models and policies", []string{"model", "history", "explain", "policy", "apply", "schedule", "simulate"}},
	{"Many models", []string{"hold", "release", "calendar", "limit", "circuit", "bulk", "failures", "freshness", "forecast", "level"}},
	{"Look after it", []string{"stats", "doctor", "rejected", "undelivered", "health", "queue", "acl", "bench"}},
	{"Beside what you have", []string{"shadow", "conformance"}},
}

// groupCommands sorts commands into groups. One that is in none stands behind them.
func groupCommands(root *cobra.Command) {
	for _, g := range groups {
		for _, command := range root.Commands() {
			if !slices.Contains(g.commands, command.Name()) {
				continue
			}
			if !root.ContainsGroup(g.title) {
				root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
			}
			command.GroupID = g.title
		}
	}
}
