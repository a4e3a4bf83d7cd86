package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// Edit is a policy or a definition of a model that somebody types: in YAML or JSON, a policy also in English.
type Edit struct {
	Name        string // of the stored policy, or the uid of the model, that it replaces; empty: it is new, and its text names it
	Text        string
	PriorDigest string // the digest of the replaced text, see store.Digest and DefinitionDigest
}

// yourText is the file name in positions of a typed text.
const yourText = "your text"

// validateName compares the name in a text with that of the stored one.
func (e Edit) validateName(at definitions.Document, field, name string, stored bool) error {
	switch {
	case e.Name == "" && stored:
		return refused(at.At(document.Refuse(field, "one that is not stored yet", document.Found(name))))
	case e.Name != "" && name != e.Name:
		return refused(at.At(document.Refuse(field, e.Name+", as it is stored under", document.Found(name))))
	default:
		return nil
	}
}

// policy reads the text as a policy. A wrong text is a Refusal.
func (e Edit) policy(ctx context.Context, o Operator) (source definitions.Source, err error) {
	var unread error // Redis was not read
	in := Inputs{
		Open: func(name string) (string, io.ReadCloser, error) {
			return name, io.NopCloser(strings.NewReader(e.Text)), nil
		},
		Connect: func(ctx context.Context, do func(Operator) error) error { unread = do(o); return unread },
	}
	sources, err := in.named(ctx, yourText, e.Name)
	switch {
	case unread != nil:
		return source, unread
	case err != nil:
		return source, refused(err)
	case len(sources) > 1:
		return source, refuse("", "one policy", "several")
	}
	fields, _ := sources[0].Value.(map[string]any)
	said, _ := fields["name"].(string)
	said = cmp.Or(said, sources[0].Policy.Name)
	stored := false
	if e.Name == "" {
		_, stored, err = o.Queue.Parts[0].Report().PolicyText(ctx, said)
	}
	return sources[0], cmp.Or(err, e.validateName(sources[0].Document, "name", said, stored))
}

// PutEdited stores a policy in place of another: if that has changed since, it returns store.ErrPolicyChanged. With plan it only returns the effect.
func PutEdited(ctx context.Context, o Operator, e Edit, plan bool) (PolicyResult, error) {
	source, err := e.policy(ctx, o)
	if err != nil {
		return PolicyResult{}, err
	}
	return o.putPolicy(ctx, source, plan, mostAsked, func(ctx context.Context, p policy.Policy) error {
		return o.Queue.Fleet().ReplacePolicy(ctx, p, e.PriorDigest)
	})
}

// DefinitionDigest identifies the definition of a model, also a missing one, so that an edit notices a change in between.
func DefinitionDigest(r *store.Record) string {
	text, _ := json.Marshal([]any{r.Exists, r.Payload, r.Rule, r.Timezone, r.Dtstart, r.PolicyName, r.Labels}) // texts only
	return store.Digest(string(text))
}

var errDefinitionChanged = document.Refuse("", "the definition as it was when you began", "that it was changed since")

// PutEditedModel saves a definition in place of another, and returns the model as it was before. A wrong text is a Refusal. With plan it only
// decides.
func PutEditedModel(ctx context.Context, o Operator, e Edit, plan bool) (r *Request, before store.Record, err error) {
	doc, err := definitions.ReadOne(yourText, strings.NewReader(e.Text))
	if err != nil {
		return nil, before, refused(err)
	}
	r = &Request{Command: model.Command{Type: model.CommandPut, By: o.By}, Position: doc.Position}
	if r.Command.Definition, err = model.ParseDefinition(doc.Value); err != nil {
		return nil, before, refused(doc.At(err))
	}
	uid := r.Command.Definition.UID
	r.Command.UID = uid
	part := o.Queue.Of(uid)
	now, err := part.Now(ctx)
	if err != nil {
		return nil, before, err
	}
	snapshot, err := part.Read(ctx, []string{uid}, []*model.Command{&r.Command})
	if err != nil {
		return nil, before, err
	}
	before = *snapshot.Records[uid]
	if err := e.validateName(doc, "uid", uid, before.Exists); err != nil {
		return nil, before, err
	}
	if plan {
		_, r.Refused = r.decide(snapshot, now)
	} else {
		r.PriorDigest = cmp.Or(e.PriorDigest, "nothing")
		err = Execute(ctx, o.Queue, []*Request{r})
	}
	if err == nil && r.Refused != nil {
		err = refused(doc.At(r.Refused))
	}
	return r, before, err
}
