package transfer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model"
	"github.com/refreshd/refreshd/model/policy"
)

func (q *queue) run(uid, attempt string) string {
	q.t.Helper()
	part := q.Of(uid)
	records, err := part.Load(q.t.Context(), []string{uid})
	q.ok(err)
	record := records[uid]
	run, _ := record.Run(true, now)
	items := []store.Item{{Transition: record.Decide(run, now)}}
	start := record.Start(now, attempt)
	items = append(items, store.Item{Transition: record.Decide(start, now)})
	codes, err := part.Commit(q.t.Context(), store.Batch{Now: now, Items: items, MaxQueued: 10})
	stopIf(q.t, err != nil || codes[1] != store.CodeApplied, "%v %v", codes, err)
	return start.Message
}

func (q *queue) input() []string {
	q.t.Helper()
	entries, err := q.server.Client(q.t).LRange(q.t.Context(), q.Parts[0].Keys.Input, 0, -1).Result()
	q.ok(err)
	return entries
}

func TestAnAttemptThatRunsStaysBehindAndIsNotCounted(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		from, to := open(t, server, "from", 1).settle(), open(t, server, "to", 1)
		from.run("m3", "a9")
		before := from.hash("m3")
		lines := from.export(true)
		behind := `"left_behind":"its attempt: imported as due at once, not counted"`
		failIf(t, strings.Count(lines, behind) != 1, "expected %s in one line, found\n%s", behind, lines)
		to.must(lines)
		hash := to.hash("m3")
		want := map[string]string{}
		for name, value := range before {
			want[name] = value
		}
		for _, name := range []string{"attempt_uid", "started_at", "deadline_at", "entry_planned_at", "entry_deadline_at", "entry_times"} {
			delete(want, name)
		}
		want["attempt_no"] = fmt.Sprint(idle(full(t)).AttemptNo)
		want["refresh_at"], want["refresh_why"] = model.FormatTime(now), whyImported
		want["last_attempt_uid"] = "a9"
		equal(t, want, hash)
		urgent := to.indexes()["urgent"]
		failIf(t, len(urgent) != 1 || !strings.HasPrefix(urgent[0], "m3 "), "expected it among the urgent, found %v", urgent)
		failIf(t, len(to.input()) > 0 || len(from.input()) != 1,
			"expected the attempt in the old queue alone, found %v and %v", from.input(), to.input())
	})
}

const whyImported = "imported: its attempt stayed behind"

func TestAParkedModelWaitsForItsTimeWhereItIsImported(t *testing.T) {
	to := open(t, testkit.Miniredis(t), "to", 1)
	m := model.Model{UID: "m1", Payload: "{}", Policy: policy.Default()}
	m.RefreshAt, m.ParkedBy, m.ParkedSince = now.Add(-time.Hour), model.NewBlocker(model.BlockerHold, "h1"), now.Add(-time.Minute)
	lines := `{"kind":"model","uid":"m1","state":{"parked_by":"hold:h1","parked_since":"2026-11-21T06:59:00.000Z","refresh_at":"2026-11-21T06:00:00.000Z"}}`
	line := newModelLine(&store.Export{Record: &store.Record{Model: m}}, nil, true)
	failIf(t, line.LeftBehind == "", "expected the line to say what stays behind")
	to.must(lines)
	hash := to.hash("m1")
	failIf(t, hash["parked_by"] != "" || hash["parked_since"] != "" || hash["refresh_at"] != "2026-11-21T06:00:00.000Z",
		"expected a model that waits for its time, found %v", hash)
	indexes := to.indexes()
	failIf(t, len(indexes["due"]) != 1 || len(indexes["parked"]) > 0, "expected it due, found %v", indexes)
}

func TestWhatIsStoredOtherwiseIsReplacedOnlyIfAskedFor(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		from, to := open(t, testkit.Miniredis(t), "from", 1).settle(), open(t, server, "to", 1)
		lines := from.export(true)
		to.must(lines)
		to.run("m1", "a8")
		nightly := policy.Default()
		nightly.Name, nightly.Timeout = "nightly", time.Minute
		to.ok(to.Fleet().PutPolicy(t.Context(), nightly))
		to.put(model.Model{UID: "m0", Payload: "{}"}, past[0])
		before := server.Dump(t)
		i, refused := to.read(lines, false)
		failIf(t, i.Models != (Count{Unchanged: 2, Refused: 2}) || i.Policies != (Count{Unchanged: 1, Refused: 1}),
			"found %+v %+v", i.Models, i.Policies)
		want := []string{
			`fleet.jsonl line 2: policy: expected the policy nightly as it is here, which its models get, or --replace, found another one`,
			`fleet.jsonl line 3: uid: expected a model that is not stored yet, or is just as the line says, or --replace, found another state of it`,
			`fleet.jsonl line 4: uid: expected a model that is not stored yet, or is just as the line says, or --replace, found another state of it`,
		}
		equal(t, want, refused)
		equal(t, before, server.Dump(t))
		i, refused = to.read(lines, true)
		failIf(t, i.Models != (Count{Unchanged: 2, Replaced: 2}) || i.Policies != (Count{Unchanged: 1, Replaced: 1}) || len(refused) > 0,
			"found %+v %+v %q", i.Models, i.Policies, refused)
		fence := full(t).Fence
		ours := strings.Replace(lines, fmt.Sprintf(`"fence":"%d"`, fence), fmt.Sprintf(`"fence":"%d"`, fence+1), 1) // it never falls behind the attempt
		equal(t, ours, to.export(true))
		entries := to.input()
		failIf(t, len(entries) > 0, "expected the attempt taken back, found %v", entries)
	})
}

func TestARefusedLineIsNamedWithItsFieldAndHarmsItselfOnly(t *testing.T) {
	for line, want := range map[string]string{
		`no json`:             `expected a JSON object`,
		`{"uid":"a"}`:         `kind: expected model or policy or calendar or limit, found nothing`,
		`{"kind":"hold"}`:     `kind: expected model or policy or calendar or limit, found "hold"`,
		`{"kind":"calendar"}`: `calendar: expected an object with name,`,
		`{"kind":"calendar","calendar":{"name":"n","rrule":"FREQ=DAILY"}}`:                                                 `calendar.for: expected`,
		`{"kind":"calendar","calendar":{},"uid":"a"}`:                                                                      `uid: expected one of kind, calendar`,
		`{"kind":"limit","key":"host","running":1}`:                                                                        `key: expected a key such as host=example.com`,
		`{"kind":"limit","key":"host=h","running":100001}`:                                                                 `running: expected`,
		`{"kind":"limit","key":"host=h","rate":"often"}`:                                                                   `rate: expected a number from 1 to 1000000, a slash`,
		`{"kind":"limit","key":1}`:                                                                                         `key: expected`,
		`{"kind":"limit","key":"host=h"}`:                                                                                  `expected running or rate, or both, found neither`,
		`{"kind":"limit","key":"host=h","running":1,"until":"soon"}`:                                                       `until: expected an RFC 3339 time, found "soon"`,
		`{"kind":"limit","key":"host=h","running":1,"since":"2026-11-21T06:00:00Z","until":"2026-11-21T06:00:00Z"}`:        `until: expected a time after`,
		`{"kind":"model","uid":"a","colour":"red"}`:                                                                        `colour: expected one of uid,`,
		`{"kind":"model","uid":"a b"}`:                                                                                     `uid: expected`,
		`{"kind":"model","uid":"a","policy":"none"}`:                                                                       `policy: expected a policy, or the name of a stored one (default), found "none"`,
		`{"kind":"model","uid":"a","history":[{}]}`:                                                                        `history: expected a state beside it`,
		`{"kind":"model","uid":"a","state":[]}`:                                                                            `state: expected an object with`,
		`{"kind":"model","uid":"a","state":{"rev":"1"}}`:                                                                   `state.rev: expected one of refresh_at,`,
		`{"kind":"model","uid":"a","state":{"again":"0"}}`:                                                                 `state.again: expected it as the hash of a model has it: "1", found "0"`,
		`{"kind":"model","uid":"a","state":{"attempt_no":1}}`:                                                              `state.attempt_no: expected a text, found 1`,
		`{"kind":"model","uid":"a","state":{"refresh_at":"soon"}}`:                                                         `state.refresh_at: expected an RFC 3339 time, found "soon"`,
		`{"kind":"model","uid":"a","state":{"refresh_at":"2026-11-21T06:00:00Z"}}`:                                         `state.refresh_at: expected it as the hash of a model has it: "2026-11-21T06:00:00.000Z", found`,
		`{"kind":"model","uid":"a","state":{"counted_by":"limit:x"}}`:                                                      `state.counted_by: expected nothing, as no attempt runs`,
		`{"kind":"model","uid":"a","state":{"attempt_uid":"x"}}`:                                                           `state.attempt_uid: expected started_at and deadline_at beside it`,
		`{"kind":"model","uid":"a","state":{},"refresh":"now"}`:                                                            `refresh: expected nothing`,
		`{"kind":"model","uid":"a","state":{},"history":[1]}`:                                                              `history[0]: expected an attempt`,
		`{"kind":"model","uid":"a","state":{},"rrule":"FREQ=NEVER"}`:                                                       `rrule FREQ: expected`,
		`{"kind":"model","uid":"a","state":{},"timezone":"Mars"}`:                                                          `timezone: expected`,
		`{"kind":"model","uid":"a","state":{},"payload":{"reply_to":1}}`:                                                   `payload.reply_to: expected a name other than`,
		`{"kind":"model","uid":"a","state":{"refresh_disabled_until_update":"1","refresh_at":"2026-11-21T06:00:00.000Z"}}`: `state.refresh_at: expected nothing, as the model is disabled`,
		`{"kind":"policy","name":"inline-1","policy":{}}`:                                                                  `name: expected`,
		`{"kind":"policy","name":"p","policy":{"timeout":"soon"}}`:                                                         `policy.timeout: expected a duration`,
	} {
		to := open(t, testkit.Miniredis(t), "to", 1)
		lines := `{"kind":"model","uid":"b"}` + "\n\n" + line + "\n" + `{"kind":"model","uid":"c","state":{}}`
		i, refused := to.read(lines, false)
		failIf(t, len(refused) != 1 || !strings.HasPrefix(refused[0], "fleet.jsonl line 3: "+want), "%s: expected %s, found %q", line, want, refused)
		failIf(t, i.Models.Created != 2 || to.hash("b") == nil || to.hash("c") == nil, "%s: expected the others imported, found %+v", line, i.Models)
	}
}

func TestOfAModelThatStandsTwiceTheLastLineCountsAndTheSameLineOnce(t *testing.T) {
	const line = `{"kind":"model","uid":"a","state":{"refresh_at":"2026-11-21T08:00:00.000Z","attempt_no":"1","reserved":"host=x"},"history":[%s]}` + "\n"
	first, second := fmt.Sprintf(line, past[0]), strings.Replace(fmt.Sprintf(line, past[0]), `"1"`, `"2"`, 1)
	for want, lines := range map[Count]string{{Created: 1, Unchanged: 1}: first + first, {Created: 1, Replaced: 1}: second + first} {
		to := open(t, testkit.Miniredis(t), "to", 1)
		i, refused := to.read(lines, want.Replaced > 0)
		hash := to.hash("a")
		failIf(t, i.Models != want || hash["attempt_no"] != "1" || hash["reserved"] != "", "found %+v, %q, %v; a slot of a limit stays behind", i.Models, refused, hash)
	}
}

// TestAHeldModelIsHeldWhereItIsImportedToo also moves its fence, and what somebody decides by.
func TestAHeldModelIsHeldWhereItIsImportedToo(t *testing.T) {
	testkit.BothIfLong(t, func(t *testing.T, server *testkit.Server) {
		from, to := open(t, server, "from", 1), open(t, server, "to", 1)
		m := model.Model{UID: "m1", Payload: "{}", Rule: "FREQ=HOURLY", Dtstart: "2026-01-01T00:00:00", Policy: policy.Default()}
		m.RefreshAt, m.ParkedBy, m.ParkedSince, m.Fence = now.Add(time.Minute), model.BySuspect, now.Add(-time.Hour), now.UnixMilli()+7
		m.Why, m.LastAttemptUID, m.LastSuccessAt = "suspect: rows 0: expected at least 1", "a2", now.Add(-24*time.Hour)
		from.put(m, `{"at":"2026-11-21T06:00:00.000Z","took":1000,"uid":"a2","is":"suspect","metrics":{"rows":0},"suspect":"rows 0: expected at least 1"}`)
		lines := from.export(true)
		failIf(t, strings.Contains(lines, "left_behind"), "expected nothing left behind, found %s", lines)
		to.must(lines)
		equal(t, from.hash("m1"), to.hash("m1"))
		failIf(t, to.hash("m1")["parked_by"] != string(model.BySuspect) || to.hash("m1")["fence"] == "", "expected it held, with its fence, found %v", to.hash("m1"))
		equal(t, from.indexes(), to.indexes())
		look := to.client.ZScore(t.Context(), to.Parts[0].Keys.Gates, string(model.BySuspect)).Val()
		failIf(t, look != float64(model.Never.UnixMilli()), "expected no dispatcher to look at it, found %v", look)
		failIf(t, to.must(lines).Models != Count{Unchanged: 1}, "expected nothing changed by the same once more")

		accept := &model.Command{Type: model.CommandAccept, UID: "m1"}
		snapshot := check.Got(to.Parts[0].Read(t.Context(), []string{"m1"}, []*model.Command{accept}))(t)
		d, outcome, err := snapshot.Records["m1"].Execute(accept, snapshot.Policies, true, now)
		failIf(t, err != nil || outcome != model.Applied || !d.Next.LastSuccessAt.Equal(m.ParkedSince) || d.Ended.AttemptUID != "a2" || !d.Replaces || d.Next.Fence < m.Fence,
			"expected its doubted success to count, found %+v, %v, %v", d, outcome, err)
	})
}
