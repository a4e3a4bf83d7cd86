package acl_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/store"
	"github.com/refreshd/refreshd/internal/testkit/check"
)

// hostile are names of queues that look alike, or like the name of another with a part of a key or of a role behind it.
var hostile = []string{
	"a", "{a}", "a-b", "{a-b}", "{a:b}", "a.b", "{a.b}", "a_b", "a-foreign", "foreign", "foreign-a", "{foreign:a}", "worker", "a-worker", "worker-a",
	"foreign-worker", "-", "-worker", "worker-", "{a:worker}", "{worker:a}", "a-input", "{a:model}", "{a:model:m}", "{a:claimed:p}", "{:}", "..",
}

func userOf(t *testing.T, role acl.Role, queue string) acl.User {
	t.Helper()
	keys := check.Got(store.NewKeys(queue))(t)
	user := check.Got(acl.NewUser(role, acl.Queue{Keys: keys}))(t)
	return user
}

func TestNoTwoUsersHaveOneName(t *testing.T) {
	owners := map[string]string{}
	for _, queue := range hostile {
		for _, role := range acl.Roles() {
			user, owner := userOf(t, role, queue), string(role)+" of "+queue
			other, taken := owners[user.Name]
			failIf(t, taken, "expected users of their own for %s and for %s, found %s for both", owner, other, user.Name)
			owners[user.Name] = owner
			failIf(t, strings.ContainsAny(user.Name, " \t\"'") || strings.Contains(user.Name, "@"),
				"expected a name that needs no quotes, found %s", user.Name)
		}
	}
	user := userOf(t, acl.ForeignWorker, "{bigtables:3}")
	failIf(t, user.Name != "foreign-worker-{bigtables:3}", "expected the role before its queue, found %s", user.Name)
	_, err := acl.NewUser("root", acl.Queue{})
	failIf(t, err == nil, "expected an unknown role refused")
}

var keyPattern = regexp.MustCompile(`(?:%[RW]+)?~([^ )]+)`)

// reachOf matches the keys that the users of a queue reach, without the lists that an operator checks before it creates a queue.
func reachOf(t *testing.T, queue acl.Queue) *regexp.Regexp {
	t.Helper()
	var patterns []string
	for _, role := range acl.Roles() {
		user := check.Got(acl.NewUser(role, queue))(t)
		rules := slices.DeleteFunc(user.Rules, func(rule string) bool { return strings.HasPrefix(rule, "(+exists ") })
		for _, found := range keyPattern.FindAllStringSubmatch(strings.Join(rules, " "), -1) {
			patterns = append(patterns, strings.NewReplacer(`\[0-9\]`, `[0-9]`, `\*`, `.*`).Replace(regexp.QuoteMeta(found[1])))
		}
	}
	return regexp.MustCompile(`^(?:` + strings.Join(patterns, "|") + `)$`)
}

func TestUsersOfAQueueOfSeveralPartsReachItsPartsAlone(t *testing.T) {
	for _, queue := range []string{"a", "{a}", "foreign", "{worker}"} {
		keys, _ := store.NewKeys(queue)
		reach := reachOf(t, acl.Queue{Keys: keys, Several: true})
		for _, other := range slices.Concat(hostile, []string{"{a:0}", "{a:1023}", "{ab:0}", "a:0", "{foreign:0}", "{b:a:0}"}) {
			number, part := strings.CutPrefix(other, "{"+strings.Trim(queue, "{}")+":")
			part = part && number[0] >= '0' && number[0] <= '9'
			for key := range everyKey {
				key = other + strings.TrimPrefix(key, "q")
				failIf(t, reach.MatchString(key) != part, "a user of the parts of %s reaches %s: expected %t, found %t", queue, key, part, !part)
			}
		}
	}
}

func TestNoUserReachesAKeyOfAnotherQueue(t *testing.T) {
	for _, queue := range hostile {
		keys, _ := store.NewKeys(queue)
		reach := reachOf(t, acl.Queue{Keys: keys})
		for _, other := range hostile {
			for key := range everyKey {
				key = other + strings.TrimPrefix(key, "q")
				own := other == queue
				failIf(t, reach.MatchString(key) != own, "a user of %s reaches %s: expected %t, found %t", queue, key, own, !own)
			}
		}
	}
}
