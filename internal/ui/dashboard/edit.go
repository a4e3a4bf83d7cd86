package dashboard

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/preview/explain"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/ui/playground"
)

var (
	policyEditPage = page{path: "policy/edit", title: "New policy", under: "policies", file: "edit", read: policyEdit.show, form: true, edits: true}
	modelEditPage  = page{path: "model/edit", title: "New model", under: "models", file: "edit", read: modelEdit.show, form: true, edits: true}
)

// editor edits policies, or models.
type editor struct {
	Kind, Key, Label, Hint string // Key is the field of its name
	list                   string // the path of the page that lists them
	// read writes the stored text of a name, and returns its digest.
	read func(ctx context.Context, req *request, name string, to io.Writer) (digest string, err error)
	// check computes what saving the text would do. A wrong text is a Refusal.
	check func(ctx context.Context, req *request, e *edit) error
}

var (
	policyEdit = editor{"policy", "name", "A policy, in English, YAML or JSON", "", "policies", readPolicyText, checkPolicy}
	modelEdit  = editor{
		"model", "uid", "A model, in YAML or JSON", "Its fields are uid, rrule (in English, cron or RRULE), timezone, dtstart, policy (a name, or one of its own), labels and payload.",
		"models", readModelText, checkModel,
	}
)

// edit is a text in the editor, and what saving it would do.
type edit struct {
	*editor
	*playground.Form

	Name        string // "": it is new
	Back        string // the address of the page that leads here
	PriorDigest string // the digest of the stored text
	Changed     bool   // the stored text has changed since the edit began
	Checked     bool   // it can be saved
	Wrong       string // why it cannot
	Differences []definitions.Difference
	Impact      []string

	zone *time.Location
}

func (e *edit) heading() (title string, zone *time.Location) {
	if e.Name == "" {
		return "New " + e.Kind, e.zone
	}
	return "Edit " + e.Name, e.zone
}

func (e *editor) show(ctx context.Context, req *request) (any, error) {
	name, typed, answers := req.get(e.Key), req.query.Has("was"), cmp.Or(req.get("answers"), "succeeds")
	page := &edit{editor: e, Name: name, Back: req.Link(e.list), zone: req.zone}
	if name != "" {
		page.Back = req.Link(e.Kind, e.Key, name)
	}
	page.Form = playground.ReadForm(func(field string) string { return map[string]string{"answers": answers}[field] })
	var stored strings.Builder
	was, err := e.read(ctx, req, name, &stored)
	if page.Text, page.PriorDigest = stored.String(), was; err != nil || !typed {
		return page, err
	}
	page.Text, page.Changed = req.edited(e.Key).Text, req.get("was") != was
	if err := e.check(ctx, req, page); err != nil {
		if refusal, is := errors.AsType[operate.Refusal](err); is {
			page.Wrong, err = inWords(refusal), nil
		}
		return page, err
	}
	page.Checked = true
	return page, play(ctx, req, func(in playground.Setting) error {
		in.Week = true
		return page.Play(in)
	})
}

// edited is the Edit of a form; key is its field of the name.
func (req *request) edited(key string) operate.Edit {
	return operate.Edit{Name: req.get(key), Text: strings.ReplaceAll(req.get("text"), "\r\n", "\n"), PriorDigest: req.get("was")}
}

func readPolicyText(ctx context.Context, req *request, name string, to io.Writer) (digest string, err error) {
	stored, _, err := req.queue.Parts[0].Report().PolicyText(ctx, name)
	if err != nil || name == "" || req.query.Has("was") { // a removed one may be saved again
		return store.Digest(stored), err
	}
	p, err := readStored(ctx, req.queue.Parts[0], name)
	return store.Digest(stored), cmp.Or(err, definitions.WriteYAML(to, p))
}

func checkPolicy(ctx context.Context, req *request, e *edit) error {
	would, err := operate.PutEdited(ctx, req.operator, req.edited(e.Key), true)
	if err != nil {
		return err
	}
	e.Differences, e.Impact = would.Differences, would.Plan.Sentences(func(at time.Time) string { return clock(at, e.zone) })
	return nil
}

func savePolicy(ctx context.Context, req *request) (outcome, error) {
	saved, err := operate.PutEdited(ctx, req.operator, req.edited("name"), false)
	return outcome{text: "The policy " + saved.Name + " is saved: " + saved.Result + ".", next: req.Link("policy", "name", saved.Name)}, err
}

func removePolicy(ctx context.Context, req *request) (outcome, error) {
	name := req.get("name")
	_, err := req.operator.RemovePolicy(ctx, name, false)
	done := outcome{text: "The policy " + name + " is removed.", next: req.Link("policies")}
	if err != nil {
		done.next = req.Link("policy", "name", name)
	}
	return done, err
}

func readModelText(ctx context.Context, req *request, uid string, to io.Writer) (digest string, err error) {
	if uid == "" {
		return operate.DefinitionDigest(&store.Record{}), nil
	}
	found, err := explain.ReadModel(ctx, req.queue.Of(uid), uid)
	if errors.Is(err, explain.ErrUnknownModel) && req.query.Has("was") {
		return readModelText(ctx, req, "", to) // as with a policy
	}
	if err != nil {
		return "", err
	}
	return operate.DefinitionDigest(found.Record), definitions.WriteModel(to, &found.Record.Model)
}

func checkModel(ctx context.Context, req *request, e *edit) error {
	put, before, err := operate.PutEditedModel(ctx, req.operator, req.edited(e.Key), true)
	if err != nil {
		return err
	}
	e.Impact = []string{"Nothing changes."}
	if put.Saved != nil {
		e.Differences = definitions.CompareModels(&before.Model, put.Saved)
		e.Impact = []string{"The next refresh is at " + cmp.Or(clock(put.Next, e.zone), "no time") + ". Without the change it is at " + cmp.Or(clock(before.RefreshAt, e.zone), "no time") + "."}
	}
	return nil
}

func saveModel(ctx context.Context, req *request) (outcome, error) {
	put, _, err := operate.PutEditedModel(ctx, req.operator, req.edited("uid"), false)
	if err != nil {
		return outcome{}, err
	}
	return outcome{text: put.Command.UID + " is saved: " + put.Result + ".", next: req.Link("model", "uid", put.Command.UID)}, nil
}
