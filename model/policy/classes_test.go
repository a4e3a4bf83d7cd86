package policy

import (
	"testing"
	"time"
)

func TestAFailureIsRetriedUnlessItsResultOrItsClassForbidsIt(t *testing.T) {
	yes, no := true, false
	all := Classes{}
	some := Classes{RetryOn: []string{"Busy"}}
	never := Classes{Never: []string{"Broken"}, Delays: map[string]time.Duration{"Gone": NeverRetry, "Slow": time.Hour, "Shut": UntilPlanned}}
	for name, test := range map[string]struct {
		classes Classes
		failure Failure
		why     string // empty: it is retried
	}{
		"any":                              {all, Failure{ErrorType: "Broken"}, ""},
		"its result says no":               {all, Failure{Retryable: &no}, "not retryable"},
		"its result says yes":              {never, Failure{ErrorType: "Broken", Retryable: &yes}, ""},
		"no type that is never retried":    {never, Failure{ErrorType: "Busy"}, ""},
		"a type that is never retried":     {never, Failure{ErrorType: "Broken"}, "never retry Broken"},
		"a delay that is never":            {never, Failure{ErrorType: "Gone"}, "never retry Gone"},
		"a delay of its own":               {never, Failure{ErrorType: "Slow"}, ""},
		"until planned":                    {never, Failure{ErrorType: "Shut"}, ""},
		"a type of the list":               {some, Failure{ErrorType: "Busy"}, ""},
		"no type of the list":              {some, Failure{ErrorType: "Broken"}, `retried only on other errors than "Broken"`},
		"no type at all":                   {some, Failure{}, `retried only on other errors than ""`},
		"an empty list":                    {Classes{RetryOn: []string{}}, Failure{ErrorType: "Busy"}, `retried only on other errors than "Busy"`},
		"a deadline needs no list":         {some, TimedOut(), ""},
		"silence needs no list":            {some, Silent(time.Minute), ""},
		"a doubt needs no list":            {some, Doubted("no rows"), ""},
		"a deadline that is never retried": {Classes{Never: []string{ReasonTimeout}}, TimedOut(), "never retry timeout"},
	} {
		retry, why := test.classes.Verdict(test.failure)
		failIf(t, retry != (test.why == "") || why != test.why, "%s: got %t, %q, want %q", name, retry, why, test.why)
	}
	for errorType, want := range map[string]time.Duration{"Slow": time.Hour, "Shut": UntilPlanned, "Gone": 0, "Busy": 0} {
		delay, has := never.Delay(errorType)
		failIf(t, has != (want != 0) || has && delay != want, "%s: got %s, %t, want %s", errorType, delay, has, want)
	}
}

func TestAFailureThatNoWorkerReportsSaysWhoseItIs(t *testing.T) {
	equal(t, Failure{Reason: "timeout", ErrorType: "timeout", Ours: true}, TimedOut())
	equal(t, Failure{Reason: "silent for 1m30s", ErrorType: "silent", Ours: true}, Silent(90*time.Second))
}

func TestItsOwnDelayPrecedesTheDelayOfAllPermanentErrors(t *testing.T) {
	p := policyOf(t, `{"delays_by_error":{"permanent":"1h","NotFoundError":"1m"}}`)
	for errorType, want := range map[string]time.Duration{"NotFoundError": time.Minute, "ForbiddenError": time.Hour} {
		got, _ := p.Classes.Delay(errorType)
		failIf(t, got != want, "%s: got %s, want %s", errorType, got, want)
	}
}
