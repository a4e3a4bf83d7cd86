package main

import (
	"os/user"

	"github.com/spf13/pflag"

	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
)

// bindBy adds the flag that says who wants a command.
func (a *app) bindBy(flags *pflag.FlagSet) {
	flags.StringVar(&a.by, "by", "", "`NAME` of who wants it, for the journal (default your user's name)")
}

// wantedBy is who wants a command: the flag says, or the name of the user does.
func (a *app) wantedBy() (string, error) {
	if a.by == "" {
		return document.Shorten(a.userName(), model.MaxBy), nil
	}
	if a.by != document.Shorten(a.by, model.MaxBy) {
		return "", usagef("by: expected at most %d bytes on one line, found %s", model.MaxBy, document.Found(a.by))
	}
	return a.by, nil
}

// userName is the name of the user whose program this is; empty: it has none, as in many containers.
func (a *app) userName() string {
	if who, err := user.Current(); err == nil {
		return who.Username
	}
	return a.getenv("USER")
}
