package forecast

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// countsOf are starts per minute from seven o'clock on.
func countsOf(perMinute ...int) *Counts { return &Counts{From: seven, PerMinute: perMinute} }

func TestStartsAreCountedInWholeMinutes(t *testing.T) {
	c := NewCounts(seven.Add(40*time.Second), seven.Add(5*time.Minute))
	for _, at := range []string{"06:59:59", "07:00:40", "07:00:59", "07:01:00", "07:04:59", "07:05:00"} {
		c.Add(clock(t, at))
	}
	want := []int{2, 1, 0, 0, 1}
	failIf(t, !reflect.DeepEqual(c.PerMinute, want) || !c.From.Equal(seven), "%v from %s, want %v", c.PerMinute, c.From, want)
}

func TestThePeakIsTheFirstOfTheFullestMinutes(t *testing.T) {
	c := countsOf(1, 7, 0, 7, 3, 2, 1)
	failIf(t, c.Peak() != 1 || c.Most() != 7 || c.Total() != 21, "peak %d of %d, %d in all", c.Peak(), c.Most(), c.Total())
	for n, want := range map[int][]int{1: {1}, 3: {1, 3, 4}, 5: {1, 3, 4, 5, 0}, 9: {1, 3, 4, 5, 0, 6}} {
		got := c.Worst(n)
		failIf(t, !reflect.DeepEqual(got, want), "worst %d: %v, want %v", n, got, want)
	}
	over := c.Over(2.5)
	failIf(t, over != 3, "%d minutes over 2.5, want 3", over)
	empty := countsOf()
	failIf(t, empty.Most() != 0 || empty.Peak() != 0 || len(empty.Worst(5)) != 0, "a period without minutes has a peak")
}

func TestABacklogPilesUpAndDrains(t *testing.T) {
	none := time.Time{}
	for _, test := range []struct {
		perMinute []int
		drain     float64
		queued    int
		from      time.Duration // how much of the first minute is over
		want      Backlog
	}{
		{[]int{3, 5, 2}, 5, 0, 0, Backlog{}},
		{[]int{0, 20, 0, 0, 0, 0}, 5, 0, 0, Backlog{15, seven.Add(2 * time.Minute), seven.Add(5 * time.Minute)}},
		{[]int{0, 20, 0}, 5, 0, 0, Backlog{15, seven.Add(2 * time.Minute), none}},
		{[]int{8, 8, 0, 8, 8, 8, 0, 0, 0}, 5, 0, 0, Backlog{10, seven.Add(6 * time.Minute), seven.Add(8 * time.Minute)}},
		{[]int{0, 0, 0}, 5, 12, 0, Backlog{7, seven.Add(time.Minute), seven.Add(3 * time.Minute)}},
		{[]int{10, 0, 0}, 10, 0, 30 * time.Second, Backlog{5, seven.Add(time.Minute), seven.Add(2 * time.Minute)}},
		{[]int{1, 1, 1, 1}, 0.5, 0, 0, Backlog{2, seven.Add(3 * time.Minute), none}},
	} {
		got := countsOf(test.perMinute...).Backlog(test.drain, test.queued, seven.Add(test.from))
		failIf(t, got != test.want, "%v drained at %v: %+v, want %+v", test.perMinute, test.drain, got, test.want)
	}
}

func TestAGroupingNamesTheGroupOfAModel(t *testing.T) {
	m := put(t, "m1", seven, `"payload":{"input_url":"https://Feeds.Example.com:8443/a.csv","mirror":"http://[::1]/b","n":1},"labels":{"tenant":"t1"}`)
	for text, want := range map[string]string{
		"host": "host=feeds.example.com", "host:n": none, "host:other": none, "label:tenant": "tenant=t1", "label:kind": none, "policy": "policy=default",
		"{n}": "n=1",
	} {
		by, err := ParseGrouping(text)
		failIf(t, err != nil || by(m) != want, "%s: %v, %q, want %q", text, err, by(m), want)
	}
	for _, text := range []string{"", "hosts", "label", "label:", "host:", "policy:x", "n"} {
		if _, err := ParseGrouping(text); err == nil || err.Error() != fmt.Sprintf("expected host, host:FIELD, label:NAME, policy or a key such as {FIELD}, found %q", text) && text != "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheLargestGroupsComeFirst(t *testing.T) {
	got := Groups{"a": 1, "b": 5, "c": 5, "d": 2}.Largest(3)
	want := []Group{{"b", 5}, {"c", 5}, {"d", 2}}
	failIf(t, !reflect.DeepEqual(got, want), "%v, want %v", got, want)
}
