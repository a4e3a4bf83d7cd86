package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/refreshd/refreshd/model/document"
)

// progressive becomes slower over a year.
const progressive = `"retries":{"by_age":["1d: 5m","7d: 1h","14d: 12h","30d: 24h","180d: 96h","360d: 192h"]}`

const day = 24 * time.Hour

func TestRetriesBecomeRarerAsAModelGrowsOld(t *testing.T) {
	table := policyOf(t, `{`+progressive+`}`).Retries
	for _, test := range []struct {
		age  time.Duration
		want string
	}{
		{0, "5m"}, {time.Hour, "5m"}, {day, "5m"}, // the first row whose bound holds, not all six
		{day + 1, "1h"}, {7 * day, "1h"},
		{7*day + 1, "12h"}, {14 * day, "12h"},
		{14*day + 1, "1d"}, {30 * day, "1d"},
		{30*day + 1, "4d"}, {180 * day, "4d"},
		{180*day + 1, "8d"}, {360 * day, "8d"},
		{360*day + 1, "-"}, {3600 * day, "-"},
	} {
		delay, retry, err := table.Delay(RetryInput{K: 7, SinceSuccess: test.age})
		got := "-"
		if retry {
			got = formatDelay(delay)
		}
		if err != nil || got != test.want {
			t.Errorf("at the age of %s: %s, want %s (%v)", document.FormatDuration(test.age), got, test.want, err)
		}
	}
	if table.Count() != Unlimited {
		t.Error("a table ends by age, not by a count")
	}
}

func TestARowMayBeWrittenInTwoWays(t *testing.T) {
	short := policyOf(t, `{"retries":{"by_age":["1d: 5m"," 1 week :next"]}}`)
	long := policyOf(t, `{"retries":{"by_age":[{"up_to":"P1D","delay":300},{"delay":"NEXT","up_to":604800}]}}`)
	if !short.Equal(long) {
		t.Errorf("%+v and %+v", short.Retries, long.Retries)
	}
}

func TestABadAgeTableIsRefusedWithTheField(t *testing.T) {
	const rows = "retries.by_age: expected 1 to 50 rows such as {up_to: 1d, delay: 5m}, found "
	row := `"1d: 5m",`
	refusals(t, map[string]string{
		`{"retries":{"by_age":[]}}`:   rows + "a list",
		`{"retries":{"by_age":{}}}`:   rows + "an object",
		`{"retries":{"by_age":"1d"}}`: rows + `"1d"`,
		`{"retries":{"by_age":[` + strings.TrimSuffix(strings.Repeat(row, 51), ",") + `]}}`: rows + "a list",

		`{"retries":{"by_age":["5m"]}}`:                                  `retries.by_age[0]: expected a row such as "1d: 5m", found "5m"`,
		`{"retries":{"by_age":["1d: 5m","1d: 1h"]}}`:                     "retries.by_age[1].up_to: expected more than 1d of the row before, found 1d",
		`{"retries":{"by_age":["7d: 5m","1d: 1h"]}}`:                     "retries.by_age[1].up_to: expected more than 1w of the row before, found 1d",
		`{"retries":{"by_age":["0: 5m"]}}`:                               `retries.by_age[0].up_to: expected an age above zero, such as "1d", found "0"`,
		`{"retries":{"by_age":["soon: 5m"]}}`:                            `retries.by_age[0].up_to: expected ` + wantDuration + `, found "soon" (a number from 0 is missing before "soon")`,
		`{"retries":{"by_age":[{"delay":"5m"}]}}`:                        `retries.by_age[0].up_to: expected an age above zero, such as "1d", found nothing`,
		`{"retries":{"by_age":[{"up_to":"1d"}]}}`:                        `retries.by_age[0].delay: expected a delay such as "5m", found nothing`,
		`{"retries":{"by_age":[{"up_to":"1d","delay":true}]}}`:           `retries.by_age[0].delay: expected a delay such as 0, "5m" or next, found true`,
		`{"retries":{"by_age":[{"up_to":"1d","delay":"5m","every":1}]}}`: "retries.by_age[0].every: expected one of up_to, delay, found an unknown field",
		`{"retries":{"by_age":["1d: 5m"],"count":3}}`:                    "retries.count: expected one of by_age, found an unknown field",
		`{"retries":{"by_age":[7]}}`:                                     "retries.by_age[0]: expected an object with up_to, delay, found 7",
	})
}
