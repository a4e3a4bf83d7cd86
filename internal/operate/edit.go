package operate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"

	"github.com/refreshd/refreshd/internal/definitions"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// PolicyEdit is a policy as somebody types it, in YAML, JSON or English.
type PolicyEdit struct {
	Name string // of the stored policy that it replaces; empty: it is new, and its text names it
	Text string
	Was  string // the stored text that it replaces; empty: none
}

// YourText is how positions call a text that somebody has typed.
const YourText = "your text"

// source reads the text. What is wrong with it is a Refusal.
func (e PolicyEdit) source(ctx context.Context, o Operator) (source definitions.Source, err error) {
	var unread error // Redis was not read
	in := Inputs{
		Open: func(name string) (string, io.ReadCloser, error) {
			return name, io.NopCloser(strings.NewReader(e.Text)), nil
		},
		Connect: func(ctx context.Context, do func(Operator) error) error { unread = do(o); return unread },
	}
	sources, err := in.named(ctx, YourText, e.Name)
	switch {
	case unread != nil:
		return source, unread
	case err != nil:
		return source, refused(err)
	case len(sources) > 1:
		return source, refuse("", "one policy", "several")
	}
	if e.Name == "" {
		_, stored, err := o.Queue.Parts[0].Report().PolicyText(ctx, sources[0].Policy.Name)
		if err != nil || stored {
			return source, cmp.Or(err, refuse("name", "one that is not stored yet", document.Found(sources[0].Policy.Name)))
		}
	}
	fields, _ := sources[0].Value.(map[string]any)
	if said, _ := fields["name"].(string); said != "" && said != sources[0].Policy.Name {
		return source, refused(sources[0].At(document.Refuse("name", e.Name+", as it is stored under", document.Found(said))))
	}
	return sources[0], nil
}

// PutEdited stores a policy in place of what it replaces: if that has changed since, it returns store.ErrPolicyChanged. With plan it only tells what
// that would change.
func PutEdited(ctx context.Context, o Operator, e PolicyEdit, plan bool) (PolicyResult, error) {
	source, err := e.source(ctx, o)
	if err != nil {
		return PolicyResult{}, err
	}
	return o.putPolicy(ctx, source, plan, func(ctx context.Context, p policy.Policy) error { return o.Queue.Fleet().ReplacePolicy(ctx, p, e.Was) })
}

// DefinitionDigest is a digest of the definition of a model, or of the fact that none is stored. It says whether somebody has changed it since.
func DefinitionDigest(r *store.Record) string {
	text, _ := json.Marshal([]any{r.Exists, r.Payload, r.Rule, r.Timezone, r.Dtstart, r.PolicyName, r.Labels}) // texts only
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var errDefinitionChanged = document.Refuse("", "the definition as it was when you began", "that it was changed since")

// ReviewModel decides what a request would do, and does nothing. before is the model as it is stored.
func ReviewModel(ctx context.Context, queue *store.Queue, r *Request) (before store.Record, err error) {
	part := queue.Of(r.Command.UID)
	now, err := part.Now(ctx)
	if err != nil {
		return before, err
	}
	snapshot, err := part.Read(ctx, []string{r.Command.UID}, []*model.Command{&r.Command})
	if err != nil {
		return before, err
	}
	before = *snapshot.Records[r.Command.UID]
	if _, problem := r.decide(snapshot, now); problem != nil {
		r.refuse(problem)
	}
	return before, nil
}
