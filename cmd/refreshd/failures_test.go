package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/testkit"
)

// badDay lets m0 to m2 fail with one fingerprint, m3 with another, and m4 with a third, which is over.
func badDay(t *testing.T) *timedQueue {
	s := newTimedQueue(t, "06:00:00")
	for i, host := range []string{"a", "a", "b", "c", "c"} {
		s.put(fmt.Sprintf("uid: m%d\npayload: {input_url: 'http://%s/x'}\nlabels: {tenant: t%d}\npolicy: {retries: [1h]}\n", i, host, i%2))
	}
	s.dispatch("06:00:01")
	for i, host := range []string{"a", "a", "b"} {
		s.answer(fmt.Sprintf("06:0%d:00", i+1), "failure", fmt.Sprint("m", i), fmt.Sprintf(`"reason":"GET http://%s/x: 503 Service Unavailable","error_type":"http_503"`, host))
	}
	s.answer("06:04:00", "failure", "m3", `"reason":"row 17 of m3 is no number"`)
	s.answer("06:05:00", "failure", "m4", `"reason":"no such file"`)
	s.do("model", "run", "m4")
	s.dispatch("06:06:00")
	s.answer("06:07:00", "success", "m4")
	return s
}

func TestFailuresAreGroupedByFingerprint(t *testing.T) {
	s := badDay(t)
	for line, want := range map[string]string{
		"failures": `
MODELS  BY                  SINCE                 LAST                  UIDS      REASON
3       error=b9f5260d86bb  2026-01-05T06:01:00Z  2026-01-05T06:03:00Z  m2 m1 m0  GET http://b/x: 503 Service Unavailable
1       error=1f73e4e25e63  2026-01-05T06:04:00Z  2026-01-05T06:04:00Z  m3        row 17 of m3 is no number
`,
		"failures --past": `
MODELS  BY                  SINCE                 LAST                  UIDS  REASON
0       error=e34cb9e34d3d  2026-01-05T06:05:00Z  2026-01-05T06:05:00Z  m4    no such file
`,
		"failures -l tenant=t0": `
MODELS  BY                  SINCE                 LAST                  UIDS   REASON
2       error=b9f5260d86bb  2026-01-05T06:01:00Z  2026-01-05T06:03:00Z  m0 m2  2 by b9f5260d86bb: http_503: GET <url>: 503 Service Unavailable
`,
		"failures --by error": `
MODELS  BY                  SINCE                 LAST                  UIDS      REASON
3       error=b9f5260d86bb  2026-01-05T06:01:00Z  2026-01-05T06:03:00Z  m2 m1 m0  GET http://b/x: 503 Service Unavailable
1       error=1f73e4e25e63  2026-01-05T06:04:00Z  2026-01-05T06:04:00Z  m3        row 17 of m3 is no number
`,
		"failures --by host": `
MODELS  BY      SINCE                 LAST                  UIDS   REASON
2       host=a  2026-01-05T06:01:00Z  2026-01-05T06:03:00Z  m0 m1  2 by b9f5260d86bb: http_503: GET <url>: 503 Service Unavailable
1       host=b  2026-01-05T06:03:00Z  2026-01-05T06:03:00Z  m2     1 by b9f5260d86bb: http_503: GET <url>: 503 Service Unavailable
1       host=c  2026-01-05T06:04:00Z  2026-01-05T06:04:00Z  m3     1 by 1f73e4e25e63: row # of <uid> is no number
`,
		"failures --by label:tenant -l uid!=m0": `
MODELS  BY         SINCE                 LAST                  UIDS   REASON
2       tenant=t1  2026-01-05T06:02:00Z  2026-01-05T06:03:00Z  m1 m3  1 by b9f5260d86bb: http_503: GET <url>: 503 Service Unavailable
1       tenant=t0  2026-01-05T06:03:00Z  2026-01-05T06:03:00Z  m2     1 by b9f5260d86bb: http_503: GET <url>: 503 Service Unavailable
`,
	} {
		got := s.do(strings.Fields(line)...)
		failIf(t, got != strings.TrimPrefix(want, "\n"), "%s: expected%s, found\n%s", line, want, got)
	}
	expectContains(t, s.do("failures", "show", "b9f5260d86bb"), "http_503: GET <url>: 503 Service Unavailable", "3  that fail with it now", "m0 m1 m2")
	expectContains(t, s.do("failures", "run", "--dry-run", "b9f5260d86bb"), "3 models\nm0\nm1\nm2\n")
	expectContains(t, s.do("explain", "m0"), "2 other models", "refreshd failures show b9f5260d86bb")
	expectContains(t, s.do("stats"), "fingerprints", "2, with which 4 models are failing: refreshd failures")
	one := s.object("failures", "show", "b9f5260d86bb")
	failIf(t, one["models"] != 3.0 || one["failures"] != 3.0 || len(one["examples"].([]any)) != 3, "found %v", one)
}

func TestAllModelsOfAFingerprintAreRunByOneCommand(t *testing.T) {
	onEach(t, func(t *testing.T, c *console, server *testkit.Server) {
		queue := c.withPoller(server)
		c.put(`{"uid":"a","refresh":"planned","rrule":"FREQ=YEARLY"}` + "\n" + `{"uid":"b","rrule":"FREQ=YEARLY"}` + "\n")
		client := server.Client(t)
		client.HSet(t.Context(), queue.Store.Keys.Model("a"), "error", "0123456789ab", "failing_since", "2026-11-21T06:00:00.000Z")
		client.ZAdd(t.Context(), queue.Store.Keys.Failing, redis.Z{Score: 1795240800000, Member: "a"})
		expectContains(t, c.do("failures", "run", "0123456789ab", "--rate", "10/s"), "1 picked, 1 done")
		runs := queue.Stats()["run"]
		failIf(t, runs != 1, "expected one run, found %d", runs)
	})
}
