package acl_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/acl"
	"github.com/refreshd/refreshd/scripts"
)

// hostile are names of queues that look alike, or like the name of another with a part of a key or of a role behind it.
var hostile = []string{
	"a", "{a}", "a-b", "{a-b}", "{a:b}", "a.b", "{a.b}", "a_b", "a-foreign", "foreign", "foreign-a", "{foreign:a}", "worker", "a-worker", "worker-a",
	"foreign-worker", "-", "-worker", "worker-", "{a:worker}", "{worker:a}", "a-input", "{a:model}", "{a:model:m}", "{a:claimed:p}", "{:}", "..",
}

func userOf(t *testing.T, role acl.Role, queue string) acl.User {
	t.Helper()
	keys, err := scripts.NewKeys(queue)
	if err != nil {
		t.Fatal(err)
	}
	user, err := acl.NewUser(role, keys)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func TestNoTwoUsersHaveOneName(t *testing.T) {
	owners := map[string]string{}
	for _, queue := range hostile {
		for _, role := range acl.Roles() {
			user, owner := userOf(t, role, queue), string(role)+" of "+queue
			if other, taken := owners[user.Name]; taken {
				t.Errorf("expected users of their own for %s and for %s, found %s for both", owner, other, user.Name)
			}
			owners[user.Name] = owner
			if strings.ContainsAny(user.Name, " \t\"'") || strings.Contains(user.Name, "@") {
				t.Errorf("expected a name that needs no quotes, found %s", user.Name)
			}
		}
	}
	if user := userOf(t, acl.ForeignWorker, "{bigtables:3}"); user.Name != "foreign-worker-{bigtables:3}" {
		t.Errorf("expected the role before its queue, found %s", user.Name)
	}
	if _, err := acl.NewUser("root", scripts.Keys{}); err == nil {
		t.Error("expected an unknown role refused")
	}
}

var keyPattern = regexp.MustCompile(`(?:%[RW]+)?~([^ )]+)`)

func TestNoUserReachesAKeyOfAnotherQueue(t *testing.T) {
	for _, queue := range hostile {
		var patterns []string
		for _, role := range acl.Roles() {
			for _, found := range keyPattern.FindAllStringSubmatch(strings.Join(userOf(t, role, queue).Rules, " "), -1) {
				patterns = append(patterns, strings.ReplaceAll(regexp.QuoteMeta(found[1]), `\*`, `.*`))
			}
		}
		reach := regexp.MustCompile(`^(?:` + strings.Join(patterns, "|") + `)$`)
		for _, other := range hostile {
			for key := range everyKey {
				key = other + strings.TrimPrefix(key, "q")
				if own := other == queue; reach.MatchString(key) != own {
					t.Errorf("a user of %s reaches %s: expected %t, found %t", queue, key, own, !own)
				}
			}
		}
	}
}
