package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
	"github.com/refreshd/refreshd/model/policy"
)

func TestALimitSetAtRunTimeIsRefusedByTheFirstFieldOutOfRange(t *testing.T) {
	const key = "host=example.com"
	pace := policy.Rate{Count: 1, Per: time.Second}
	for name, test := range map[string]struct {
		limit Limit
		field string // "-": it is accepted
	}{
		"a key":                   {Limit{Name: key, Running: 1}, "-"},
		"a template":              {Limit{Name: "{host(input_url)}", Running: 1}, "-"},
		"neither":                 {Limit{Name: "example.com", Running: 1}, "key"},
		"one attempt too few":     {Limit{Name: key, Running: -1, Rate: pace}, "running"},
		"as many as may run":      {Limit{Name: key, Running: MaxRunning}, "-"},
		"one more":                {Limit{Name: key, Running: MaxRunning + 1}, "running"},
		"a rate alone":            {Limit{Name: key, Rate: pace}, "-"},
		"no bound":                {Limit{Name: key}, ""},
		"an end":                  {Limit{Name: key, Running: 1, Since: monday, Until: monday.Add(1)}, "-"},
		"an end at its beginning": {Limit{Name: key, Running: 1, Since: monday, Until: monday}, "until"},
		"an end before":           {Limit{Name: key, Running: 1, Since: monday, Until: monday.Add(-1)}, "until"},
	} {
		err := test.limit.Validate()
		failIf(t, err == nil != (test.field == "-") || refusedField(err) != test.field, "%s: got %v, want a refusal of %q", name, err, test.field)
	}
}

func TestALimitIsOverFromItsEndOn(t *testing.T) {
	b := Blockers{
		Limits:      map[string]Limit{"a=1": {Name: "a=1", Until: monday}, "b=1": {Name: "b=1", Until: monday.Add(1)}},
		QueueLimits: []QueueLimit{{Limit: Limit{Name: "{a}", Until: monday.Add(-1)}}, {Limit: Limit{Name: "{b}"}}},
	}
	equal(t, []string{"a=1", "{a}"}, b.Ended(monday))
	equal(t, []string{"a=1", "b=1", "{a}"}, sorted(b.Ended(monday.Add(1))))
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

// namedLimits are limits as "key running rate".
func namedLimits(limits []Limit) (texts []string) {
	for _, limit := range limits {
		texts = append(texts, strings.TrimSpace(limit.Name+" "+document.Found(limit.Running)+" "+limit.Rate.String()))
	}
	return texts
}

func TestOfEachKeyOfAModelOneLimitIsInForce(t *testing.T) {
	ruled, plain := policyOf(t, `{"limits":[{"key":"{policy}","running":4},{"key":"{label.tenant}","rate":"60/m"}]}`), policyOf(t, `{}`)
	pace := policy.Rate{Count: 1, Per: time.Second}
	ofQueue := func(template string, limit Limit) QueueLimit { return QueueLimit{keyOf(template), limit} }
	tenant := map[string]string{"tenant": "t1"}
	for name, test := range map[string]struct {
		policy   policy.Policy
		labels   map[string]string
		blockers Blockers
		want     []string
	}{
		"nothing":                 {plain, tenant, Blockers{Limits: map[string]Limit{"tenant=t1": {Name: "tenant=t1", Running: 1}}}, nil},
		"of the policy, sorted":   {ruled, tenant, Blockers{}, []string{"policy=default 4", "tenant=t1 0 60/m"}},
		"without the label":       {ruled, nil, Blockers{}, []string{"policy=default 4"}},
		"of the queue":            {plain, tenant, Blockers{QueueLimits: []QueueLimit{ofQueue("{label.tenant}", Limit{Running: 2})}}, []string{"tenant=t1 2"}},
		"of the queue, over":      {plain, tenant, Blockers{QueueLimits: []QueueLimit{ofQueue("{label.tenant}", Limit{Running: 2, Until: monday})}}, nil},
		"the policy before":       {ruled, tenant, Blockers{QueueLimits: []QueueLimit{ofQueue("{policy}", Limit{Running: 2})}}, []string{"policy=default 4", "tenant=t1 0 60/m"}},
		"set for the key":         {ruled, nil, Blockers{Limits: map[string]Limit{"policy=default": {Name: "policy=default", Rate: pace}}}, []string{"policy=default 0 1/s"}},
		"set for the key, over":   {ruled, nil, Blockers{Limits: map[string]Limit{"policy=default": {Name: "policy=default", Rate: pace, Until: monday}}}, []string{"policy=default 4"}},
		"one part has it all":     {ruled, tenant, Blockers{Parts: 1}, []string{"policy=default 4", "tenant=t1 0 60/m"}},
		"one of four parts":       {ruled, tenant, Blockers{Parts: 4, Part: 3}, []string{"policy=default 1", "tenant=t1 0 60/4m"}},
		"at least one in a part":  {ruled, tenant, Blockers{Parts: 8, Part: 3}, []string{"policy=default 1", "tenant=t1 0 60/8m"}},
		"two parts have the half": {ruled, tenant, Blockers{Parts: 2, Part: 1}, []string{"policy=default 2", "tenant=t1 0 60/2m"}},
	} {
		m := &Model{UID: "a", Payload: "{}", Labels: test.labels, Policy: test.policy}
		if diff := strings.Join(namedLimits(test.blockers.LimitsOf(m, monday)), ", "); diff != strings.Join(test.want, ", ") {
			t.Errorf("%s: got %s, want %s", name, diff, strings.Join(test.want, ", "))
		}
	}
}

func TestThePartsOfAQueueHaveALimitTogether(t *testing.T) {
	const parts = 4
	first := map[int]bool{}
	for _, tenant := range []string{"t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"} {
		for running := parts; running <= 2*parts; running++ {
			sum := 0
			for part := range parts {
				b := Blockers{Part: part, Parts: parts, QueueLimits: []QueueLimit{{keyOf("{label.tenant}"), Limit{Running: running}}}}
				share := b.LimitsOf(&Model{Payload: "{}", Labels: map[string]string{"tenant": tenant}}, monday)[0].Running
				if sum += share; running == parts+1 && share == 2 {
					first[part] = true
				}
			}
			failIf(t, sum != running, "%s: the parts have %d of %d", tenant, sum, running)
		}
	}
	failIf(t, len(first) < 2, "of all keys the same part has the larger share: %v", first)
}

func TestAnAttemptIsCountedByTheKeysOfAKind(t *testing.T) {
	const all = "limit:host=a circuit:host=b limit:policy=p"
	equal(t, []string{"host=a", "policy=p"}, CountedBy(all, BlockerLimit))
	equal(t, []string{"host=b"}, CountedBy(all, BlockerCircuit))
	equal(t, 0, len(CountedBy("", BlockerLimit)))
}

func TestAKeyIsFullWhenAsManyRunAsMay(t *testing.T) {
	for _, test := range []struct {
		running, most int
		full          string
	}{{1, 2, ""}, {2, 2, "a=1"}, {3, 2, "a=1"}, {3, 0, ""}} {
		l := &Limiters{}
		l.Learn(Limiters{Keys: map[string]*LimiterState{"a=1": {Running: test.running}}})
		got := l.Full([]Limit{{Name: "b=1", Running: 1}, {Name: "a=1", Running: test.most}})
		failIf(t, got != test.full, "%d of %d run: got %q, want %q", test.running, test.most, got, test.full)
	}
}

// What is known already was changed by decisions of this round; what was read again is older.
func TestWhatIsKnownOfAKeyIsNotLearnedAnew(t *testing.T) {
	l := &Limiters{}
	l.Learn(Limiters{Keys: map[string]*LimiterState{"a=1": {Running: 2}}, Circuits: map[string]*CircuitState{"a=1": {Probe: "m"}}})
	l.Learn(Limiters{
		Keys:     map[string]*LimiterState{"a=1": {Running: 1}, "b=1": {Running: 3}},
		Circuits: map[string]*CircuitState{"a=1": {}, "b=1": {Probe: "n"}},
	})
	failIf(t, l.Keys["a=1"].Running != 2 || l.Keys["b=1"].Running != 3, "got %+v", l.Keys)
	failIf(t, l.Circuits["a=1"].Probe != "m" || l.Circuits["b=1"].Probe != "n", "got %+v", l.Circuits)
}
