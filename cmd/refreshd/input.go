package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model/policy"
)

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected one file, or - for standard input, found %d", len(args))
	}
	return nil
}

// openInput opens a file, or standard input (-). The name is for people.
func (a *app) openInput(path string) (name string, in io.ReadCloser, err error) {
	if path == "-" {
		return "standard input", io.NopCloser(a.stdin), nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return path, nil, err
	}
	if err := definitions.CheckFile(path, info); err != nil {
		return path, nil, err
	}
	in, err = os.Open(path)
	return path, in, err
}

// readDocuments reads the policies of a file or of standard input, or the stored policy of that name where there is no such
// file. They are decoded, but not yet known to be policies.
func (a *app) readDocuments(ctx context.Context, from string) (name string, docs []definitions.Document, stored bool, err error) {
	name, in, err := a.openInput(from)
	if errors.Is(err, os.ErrNotExist) && policy.ValidateName(from) == nil {
		doc, err := a.readStored(ctx, from)
		return name, []definitions.Document{doc}, true, err
	}
	if err != nil {
		return name, nil, false, err
	}
	defer in.Close()
	docs, err = definitions.ReadPolicies(name, in)
	return name, docs, false, err
}

func (a *app) readStored(ctx context.Context, name string) (doc definitions.Document, err error) {
	doc.Position = func(string) string { return "stored policy " + name }
	err = a.withQueue(ctx, func(queue *store.Queue) error {
		text, found, err := queue.Parts[0].Report().PolicyText(ctx, name)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%s: expected a file or the name of a stored policy, found neither", name)
		}
		if err := json.Unmarshal([]byte(text), &doc.Value); err != nil {
			return doc.At(fmt.Errorf("expected JSON: %w", err))
		}
		return nil
	})
	return doc, err
}

// readStoredPolicy reads a policy that must be stored.
func (a *app) readStoredPolicy(ctx context.Context, name string) (policy.Policy, error) {
	doc, err := a.readStored(ctx, name)
	if err != nil {
		return policy.Policy{}, err
	}
	p, err := policy.ParseStored(doc.Value)
	if err != nil {
		return p, doc.At(err)
	}
	p.Name = name
	return p, nil
}

// readPolicies reads one policy or more, and completes them. An error names the position of the first that is none.
func (a *app) readPolicies(ctx context.Context, from string) ([]definitions.Source, error) {
	sources, err := a.readDrafts(ctx, from)
	if err == nil {
		err = definitions.Complete(sources, func() (policy.Policy, error) { return a.usualPolicy(ctx), nil })
	}
	return sources, err
}

// readDrafts reads policies that are yet to be completed, unless they are stored.
func (a *app) readDrafts(ctx context.Context, from string) ([]definitions.Source, error) {
	name, docs, stored, err := a.readDocuments(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s: expected a policy, found nothing", name)
	}
	return definitions.Drafts(docs, from, stored)
}

// usualPolicy is what policies are completed with that are only looked at: the stored policy `default`, where somebody said which Redis
// that is in and it answers, or else the built-in one.
func (a *app) usualPolicy(ctx context.Context) policy.Policy {
	if a.redis == "" {
		return policy.Default()
	}
	usual, err := a.readStoredPolicy(ctx, policy.DefaultName)
	if err != nil {
		a.complain("completed with the built-in policy: " + err.Error())
		return policy.Default()
	}
	return usual
}

// readPolicy reads exactly one policy.
func (a *app) readPolicy(ctx context.Context, from string) (definitions.Source, error) {
	sources, err := a.readPolicies(ctx, from)
	if err != nil {
		return definitions.Source{}, err
	}
	if len(sources) > 1 {
		return definitions.Source{}, fmt.Errorf("%s: expected one policy, found %d", from, len(sources))
	}
	return sources[0], nil
}

// showProgress returns what reads the same, and shows on the terminal how far it has come. Without a terminal for complaints, or with one
// that is full of results already, it shows nothing.
func (a *app) showProgress(in io.Reader) io.Reader {
	errors, is := a.stderr.(*os.File)
	if !is || !isTerminal(errors) || isTerminal(a.stdout) {
		return in
	}
	size := int64(-1)
	if file, is := in.(*os.File); is {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	bar := progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(errors), progressbar.OptionShowBytes(true), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	read := progressbar.NewReader(in, bar)
	return &read
}
