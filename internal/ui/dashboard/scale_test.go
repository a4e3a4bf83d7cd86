package dashboard

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/testkit"
	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/internal/testkit/fixture"
	"github.com/refreshd/refreshd/internal/testkit/long"
)

func TestAnAutoscalerIsToldTheSlotsThatThePlanNeedsWithTheRightsOfAViewer(t *testing.T) {
	users := fixture.WithUsers(t, "bigtables")
	d := sitAt(t, fixture.New(t, users.Server), "", users.Client(t, acl.Viewer), withToken)
	d.put(`"uid":"a","refresh":"now","rrule":"FREQ=MINUTELY;INTERVAL=5"`)
	d.start()
	users.Forgive(t)
	for address, want := range map[string]int{
		"/scale": 200, "/scale?queue=bigtables&horizon=1h": 200, "/scale?queue=other": 404, "/scale?horizon=2h": 400, "/scale?horizon=soon": 400,
	} {
		request := d.request(http.MethodGet, address, nil)
		request.Header.Set("Accept", "application/json")
		response, _ := d.ask(request)
		failIf(t, response.StatusCode != 401, "%s: want the token asked for, got %s", address, response.Status)
		request = d.request(http.MethodGet, address, nil)
		request.Header.Set("Authorization", "Bearer "+secret)
		response, text := d.ask(request)
		failIf(t, response.StatusCode != want, "%s: want %d, got %s: %s", address, want, response.Status, text)
		if want == 200 {
			var told operate.Slots
			check.Must(t, json.Unmarshal([]byte(text), &told))
			failIf(t, told.Slots != 1 || told.Running != 1 || told.Starts == 0, "%s: want one slot for the attempt that runs and those that follow, got %s", address, text)
		}
	}
	users.ExpectNoRefusal(t)
}

// maxCalls bounds the calls of Redis that a page takes, those within scripts too: they are what makes a page slow.
const maxCalls = 1000

func TestNoPageOfAHundredThousandModelsTakesManyCallsOfRedis(t *testing.T) {
	long.Only(t)
	q := fixture.New(t, testkit.Redis(t))
	client := q.Server.Client(t)
	d := sitAt(t, q, "", client, nil)
	d.put(`"uid":"m1","policy":{"timeout":"5m","retries":["1m"]},"rrule":"FREQ=HOURLY","labels":{"tenant":"t1"}`)
	k := q.Store.Keys
	_, err := client.Eval(t.Context(), `local hash, n = redis.call("HGETALL", KEYS[1]), 0
		for i = 2, 100000 do
			local key = KEYS[2] .. "m" .. i
			redis.call("HSET", key, unpack(hash))
			redis.call("ZADD", KEYS[3], 4e12, "m" .. i)
			redis.call("SADD", KEYS[4], "m" .. i)
			if i % 100 == 0 then redis.call("ZADD", KEYS[5], 1000 * i, "m" .. i) redis.call("HSET", key, "failing_since", "2026-11-21T06:00:00.000Z") end
		end`, []string{k.Model("m1"), k.Model(""), k.Due, k.Label("tenant=t1"), k.Failing}).Result()
	failIf(t, err != nil && !errors.Is(err, redis.Nil), "%v", err)
	calls := func() (sum int) {
		for line := range strings.Lines(client.Info(t.Context(), "commandstats").Val()) {
			if _, counts, is := strings.Cut(line, ":calls="); is {
				number, _, _ := strings.Cut(counts, ",")
				n, _ := strconv.Atoi(number)
				sum += n
			}
		}
		return sum
	}
	for _, path := range append([]string{"models", "models?l=tenant%3Dt1", "models?l=status%3Dfailing", "model?uid=m1", "?period=90d"}, everyPage...) {
		before := calls()
		response, text := d.ask(d.request(http.MethodGet, home+path, nil))
		failIf(t, response.StatusCode != 200 && response.StatusCode != 404, "%q: %s: %s", path, response.Status, text)
		took := calls() - before
		failIf(t, took > maxCalls, "%q: expected at most %d calls of Redis, found %d", path, maxCalls, took)
	}
}
