package operate

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/store"
)

// RedisUsers returns the users of Redis for roles in a queue; no roles: all. several: the queue has several parts. password is the rule of the
// password in a file, whose text is never printed.
func RedisUsers(queue string, roles []string, several bool, passwordFile string) (users []acl.User, password string, err error) {
	keys, err := store.NewKeys(queue)
	if err != nil {
		return nil, "", refused(err)
	}
	hash := ""
	if passwordFile != "" {
		text, err := os.ReadFile(passwordFile)
		if err != nil {
			return nil, "", refuse("password-file", "a file that can be read", err.Error())
		}
		password := strings.TrimRight(string(text), "\r\n")
		if password == "" || strings.ContainsAny(password, "\r\n") {
			return nil, "", refuse("password-file", "one line with a password in "+passwordFile, "none or several")
		}
		sum := sha256.Sum256([]byte(password))
		hash = hex.EncodeToString(sum[:])
	}
	for _, role := range acl.Roles() {
		if len(roles) > 0 && !slices.Contains(roles, string(role)) {
			continue
		}
		user, err := acl.NewUser(role, acl.Queue{Keys: keys, Several: several})
		if err != nil {
			return nil, "", err
		}
		users = append(users, user)
	}
	return users, acl.Password(hash), nil
}
