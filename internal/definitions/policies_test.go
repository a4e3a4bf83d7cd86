package definitions

import (
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/testkit/check"
	"github.com/refreshd/refreshd/model/policy"
)

func TestTheSentencesOfTheSourcesInOneFieldAreAPolicy(t *testing.T) {
	const said = `\n  - Refresh the model every 2 hours\n  - Allow 1 hour for a response\n  - On the first failure, retry immediately\n` +
		`  - On the second failure, retry after 1 minute\n  - Panic\n`
	for _, text := range []string{`{"expr": "` + said + `"}`, "expr: |" + strings.ReplaceAll(said, `\n`, "\n")} {
		docs := check.Got(ReadPolicies("policy.yaml", strings.NewReader(text)))(t)
		p := check.Got(policy.Parse(docs[0].Value))(t)
		failIf(t, p.Rule != "FREQ=HOURLY;INTERVAL=2" || p.MaxRetries() != 2 || p.OnExhausted != policy.GiveUp || !docs[0].English,
			"%s: got %s, %d retries, then %s", text, p.Rule, p.MaxRetries(), p.OnExhausted)
	}
	_, err := ReadPolicies("policy.json", strings.NewReader(`{"expr": "- Refresh the model every 2 hours\n- Wibble the wobble"}`))
	failIf(t, err == nil || !strings.Contains(err.Error(), "policy.json line 1: expr") || !strings.Contains(err.Error(), "Wibble the wobble"), "got %v", err)
}
