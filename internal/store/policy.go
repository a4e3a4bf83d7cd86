package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/redis"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

// DefaultPolicyName is the stored policy that serves models which name none; the built-in one serves until somebody stores it.
const DefaultPolicyName = policy.DefaultName

// policyCache keeps compiled policies by their stored text, so that a million models share a few. It takes at most about 32 MB; beyond,
// it starts anew, which costs one parse per policy in use.
type policyCache struct {
	mu     sync.Mutex
	byText map[string]policy.Policy
	bytes  int // that they take, about

	last []string // names of the policies of the models that were read last
}

// maxGuessed bounds how many policies are read with models before anybody knows which they use.
const maxGuessed = 50

// guess names the policies that the models which are read next may use: those that were used last.
func (c *policyCache) guess() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{""}, c.last...)
}

// maxCachedPolicies bounds the cache, in bytes.
const maxCachedPolicies = 32 << 20

func (c *policyCache) parse(text string) (policy.Policy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if policy, found := c.byText[text]; found {
		return policy, nil
	}
	var value any
	var p policy.Policy
	err := json.Unmarshal([]byte(text), &value)
	if err == nil {
		p, err = policy.ParseStored(value)
	}
	if err != nil {
		return p, redis.Wrap(err, "read stored policy")
	}
	size := 3*len(text) + 544 + p.CompiledSize() // about: its text, the parsed policy, the entry of the map, and the compiled rules
	if c.byText == nil || c.bytes+size > maxCachedPolicies {
		c.byText, c.bytes = make(map[string]policy.Policy), 0
	}
	c.byText[text] = p
	c.bytes += size
	return p, nil
}

// Policies reads stored policies by name; the empty name is the default policy. A name that is missing in the result is not
// stored, or its text cannot be read.
func (s *Store) Policies(ctx context.Context, names []string) (map[string]policy.Policy, error) {
	if len(names) == 0 {
		return map[string]policy.Policy{}, nil
	}
	texts, err := s.Clients.Read.HMGet(ctx, s.Keys.Policies, policyFields(names)...).Result()
	return s.compile(names, texts), redis.Wrap(s.nameWrongType(ctx, s.Keys.Policies, err), "read policies")
}

// nameWrongType names the hash that an error is about, if it is of another type.
func (s *Store) nameWrongType(ctx context.Context, hash string, err error) error {
	if _, is := redis.WrongType(err); !is {
		return err
	}
	types, failed := s.Report().Types(ctx, []string{hash})
	if failed != nil {
		return err
	}
	return fmt.Errorf("%s holds a %s, expected a hash: %w", hash, types[0], err)
}

// policyFields are the names under which policies are stored.
func policyFields(names []string) []string {
	return redis.Map(names, func(name string) string { return cmp.Or(name, DefaultPolicyName) })
}

// compile reads the texts of policies, as Redis has answered for their fields; none: nothing was answered.
func (s *Store) compile(names []string, texts []any) map[string]policy.Policy {
	policies := make(map[string]policy.Policy, len(names))
	for i, text := range texts {
		name := names[i]
		if text, stored := text.(string); !stored {
			if cmp.Or(name, DefaultPolicyName) == DefaultPolicyName {
				policies[name] = policy.Default()
			}
		} else if p, err := s.policies.parse(text); err == nil {
			policies[name] = p
		}
	}
	return policies
}

// ParsePolicy reads the text of a stored policy.
func (s Report) ParsePolicy(text string) (policy.Policy, error) { return s.store.policies.parse(text) }

// PutPolicy stores a policy in every part. If that ends halfway, the first part has it: to repeat it, and doctor, bring it to the others.
func (q QueueFleet) PutPolicy(ctx context.Context, p policy.Policy) error {
	return q.queue.ChangeEach(func(part *Store) error { return part.Fleet().PutPolicy(ctx, p) })
}

// Digest identifies a text, however a form has carried it.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ReplacePolicy stores a policy if its name still has the text of that digest, see PolicyText; Digest("") is for none. Else it returns
// ErrPolicyChanged.
func (q QueueFleet) ReplacePolicy(ctx context.Context, p policy.Policy, was string) error {
	var first error // what the first part answers holds for all
	return q.queue.ChangeEach(func(part *Store) error {
		switch {
		case part == q.queue.Parts[0]:
			first = part.Fleet().putPolicy(ctx, p, func(stored string) bool { return Digest(stored) == was })
			return first
		case first != nil:
			return nil
		default:
			return part.Fleet().PutPolicy(ctx, p)
		}
	})
}

// ErrPolicyChanged refuses to replace a policy that somebody has changed.
var ErrPolicyChanged = document.Refuse("", "the policy as it was when you began", "that it was changed since")

// RemovePolicy forgets a stored policy in every part; false: there was none of that name.
func (q QueueFleet) RemovePolicy(ctx context.Context, name string) (removed bool, err error) {
	err = q.queue.ChangeEach(func(part *Store) error {
		is, err := part.Fleet().RemovePolicy(ctx, name)
		removed = removed || is
		return err
	})
	return removed, err
}

// PutPolicy stores a policy under its name. It takes effect at the next decision of each model that uses it; where it plans otherwise than
// what it replaces, a poller plans those anew that wait for a planned refresh.
func (s Fleet) PutPolicy(ctx context.Context, p policy.Policy) error {
	return s.putPolicy(ctx, p, func(string) bool { return true })
}

func (s Fleet) putPolicy(ctx context.Context, p policy.Policy, replaces func(stored string) bool) error {
	if err := policy.ValidateName(p.Name); err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode policy: %w", err)
	}
	if err := p.CheckSize(); err != nil {
		return err
	}
	_, err = s.replacePolicy(ctx, p.Name, string(text), p, replaces)
	return redis.Wrap(err, "store policy")
}

// RemovePolicy forgets a stored policy; false: there was none. Its models run under the default policy, with a fault. Only the doctor removes inline
// policies.
func (s Fleet) RemovePolicy(ctx context.Context, name string) (bool, error) {
	if policy.IsInline(name) {
		return false, document.Refuse("name", "that of a policy stored by name, not of an inline one", document.Found(name))
	}
	removed, err := s.replacePolicy(ctx, name, "", policy.Default(), func(string) bool { return true })
	return removed, redis.Wrap(err, "remove policy")
}

// replacePolicy changes the text of a policy; an empty one removes it. In the same step it begins to plan the models anew if they start or become
// stale at other times. false: it was so before.
func (s Fleet) replacePolicy(ctx context.Context, name, text string, after policy.Policy, replaces func(stored string) bool) (bool, error) {
	return s.store.Fleet().Change(ctx, s.store.Keys.Policies, Order{}, func() (c Change, err error) {
		was, err := s.store.Clients.Read.HGet(ctx, s.store.Keys.Policies, name).Result()
		if err = redis.IgnoreMissing(err); err != nil || was == text {
			return c, err
		}
		if !replaces(storedText(name, was)) {
			return c, ErrPolicyChanged
		}
		now, err := s.store.Now(ctx)
		if err != nil {
			return c, err
		}
		before, found := s.store.compile([]string{name}, []any{was})[name]
		if !found { // its models run under the default policy
			before = policy.Default()
		}
		c.Fields, c.Deed = []string{name, text}, model.Deed{Verb: "policy put", What: name}
		if text == "" {
			c.Deed.Verb = "policy rm"
		}
		if !before.PlansAlike(after) || !before.WatchesAlike(after) {
			var selector model.Selector
			selector, err = model.ParseSelector(model.SelectPolicy + "=" + name)
			c.Bulk = &BulkWish{ID: ReplanID(name), Bulk: model.Bulk{Action: model.BulkReplan, Selector: selector, Since: now}}
		}
		return c, err
	})
}

// EachPolicy hands over all stored policies under the names that they are stored by. problem says why one cannot be read; empty: it can. One may
// come twice.
func (s Report) EachPolicy(ctx context.Context, visit func(name string, p policy.Policy, problem string)) error {
	return redis.EachField(ctx, s.store.Clients.Read, "walk over the policies", s.store.Keys.Policies, func(name, text string) {
		problem := ""
		p, err := s.store.policies.parse(text)
		if err != nil {
			problem = err.Error()
		}
		visit(name, p, problem)
	})
}

// PolicyNames lists the policies that were stored under a name of their own, sorted.
func (s Report) PolicyNames(ctx context.Context) ([]string, error) {
	names, err := s.store.Clients.Read.HKeys(ctx, s.store.Keys.Policies).Result()
	if err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	names = slices.DeleteFunc(names, policy.IsInline)
	if !slices.Contains(names, DefaultPolicyName) {
		names = append(names, DefaultPolicyName)
	}
	slices.Sort(names)
	return names, nil
}

// PolicyText reads the canonical JSON of a stored policy; false: there is none of that name. The built-in default policy counts
// as stored until another is.
func (s Report) PolicyText(ctx context.Context, name string) (text string, found bool, err error) {
	text, err = s.store.Clients.Read.HGet(ctx, s.store.Keys.Policies, name).Result()
	switch {
	case err == nil:
		return text, true, nil
	case !redis.Missing(err):
		return "", false, fmt.Errorf("read policy: %w", err)
	default:
		text = storedText(name, "")
		return text, text != "", nil
	}
}

// storedText returns the text that counts as stored under a name; "": none.
func storedText(name, text string) string {
	if text != "" || name != DefaultPolicyName {
		return text
	}
	canonical, _ := json.Marshal(policy.Default()) // the default policy can be encoded
	return string(canonical)
}

// CountPolicies counts the models that use each policy. If a part has more than so many models, a sample of it is counted, and all is false.
func (q QueueReport) CountPolicies(ctx context.Context, most int) (uses map[string]int, models int, all bool, err error) {
	uses, all = map[string]int{}, true
	err = q.queue.Each(func(part *Store) error {
		bound, seen := most, 0
		sum, err := part.Report().models(ctx)
		if err != nil {
			return err
		}
		if sum > int64(most) {
			bound = most / 4
		}
		err = part.Report().EachSelected(ctx, model.Selector{}, func(uids []string) error {
			if seen >= bound { // many wait for nothing, and are in none of the sets
				return errEnough
			}
			seen += len(uids)
			names, err := part.Report().PoliciesOf(ctx, uids)
			for _, name := range names {
				uses[cmp.Or(name, DefaultPolicyName)]++
			}
			return err
		})
		models += seen
		if errors.Is(err, errEnough) {
			all, err = false, nil
		}
		return err
	})
	return uses, models, all, err
}

// errEnough ends a walk over more models than are counted.
var errEnough = errors.New("enough are counted")

// PolicyUse is when a model was saved with an inline policy last.
type PolicyUse struct {
	Name  string
	Saved time.Time // zero: nobody knows

	recorded string // as <queue>:policy_uses has it; empty: it has not
}

// PolicyUses reads when models were saved with inline policies, by the names of these.
func (s Fleet) PolicyUses(ctx context.Context) (map[string]PolicyUse, error) {
	uses := map[string]PolicyUse{}
	err := redis.EachField(ctx, s.store.Clients.Read, "walk over the uses of policies", s.store.Keys.PolicyUses, func(name, recorded string) {
		if !policy.IsInline(name) {
			return
		}
		use := PolicyUse{Name: name, recorded: recorded}
		if saved, is := strings.CutPrefix(recorded, "? "); is {
			use.Saved = time.UnixMilli(redis.ParseInt(saved)).UTC()
		}
		uses[name] = use
	})
	return uses, err
}

// ForgetPolicy forgets an inline policy; false: a model was saved with it since its use was read.
func (s Fleet) ForgetPolicy(ctx context.Context, use PolicyUse) (bool, error) {
	forgotten, err := s.store.Clients.WriteIf(ctx, func(tx *goredis.Tx) (bool, error) {
		recorded, err := tx.HGet(ctx, s.store.Keys.PolicyUses, use.Name).Result()
		return recorded == use.recorded, redis.IgnoreMissing(err)
	}, func(pipe goredis.Pipeliner) {
		pipe.HDel(ctx, s.store.Keys.Policies, use.Name)
		pipe.HDel(ctx, s.store.Keys.PolicyUses, use.Name)
	}, s.store.Keys.PolicyUses)
	return forgotten, redis.Wrap(err, "forget a policy")
}
