package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/refreshd/refreshd/cmd/refreshd/internal/print"
	"github.com/refreshd/refreshd/internal/admin/acl"
	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/internal/redis"
)

func aclCommand(a *app) *cobra.Command {
	var roles []string
	var passwordFile string // "": the password is CHANGE-ME
	var file bool           // print lines of an ACL file, not commands
	var parts bool          // the queue has several parts
	command := &cobra.Command{
		Use: "acl", Short: "Print users of Redis that may do what their part needs, and nothing else", Args: cobra.NoArgs,
		Long: `Print one user of Redis for each role in the queue, as commands for redis-cli (Redis 7.0 and later):

  refreshd acl --queue bigtables --password-file secret.txt | redis-cli

Without --password-file each has the password CHANGE-ME. With it, the SHA-256 of what the file holds is printed, never the
password. A user is called like its role and its queue, as in worker-bigtables or worker-{bigtables:3}; in an address : is
written %3A. Afterwards take the rights of the user that everybody is who does not log in: ACL SETUSER default off.

It does not talk to Redis: if the queue has several parts, say so by --parts. Then the users reach every queue whose name begins
like a part, as in {bigtables:0, so give no other queue such a name.

Only a dispatcher and a poller may load scripts. They do so for all others, when they start and whenever Redis has forgotten
them; so upgrade them first. A viewer and an operator may use SCAN, which shows the names of all keys of the database, but not
what they hold. docs/guarantees.md lists what remains possible with the password of a role.`,
		RunE: func(*cobra.Command, []string) error {
			if err := a.requireOneQueue(); err != nil {
				return err
			}
			for _, role := range roles {
				if err := oneOf("role", role, roleNames()); err != nil {
					return err
				}
			}
			users, password, err := operate.RedisUsers(a.store.Queue, roles, parts, passwordFile)
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, user := range users {
				switch {
				case a.json():
					err = print.JSONLine(&text, userView{user, password})
				case file:
					fmt.Fprintln(&text, user.Line(password))
				default:
					fmt.Fprintln(&text, user.SetUser(password))
				}
				if err != nil {
					return err
				}
			}
			_, err = io.WriteString(a.stdout, text.String())
			return err
		},
	}
	command.Flags().StringSliceVar(&roles, "role", nil, "only the user of `ROLE`: "+strings.Join(roleNames(), ", ")+" (default all)")
	command.Flags().StringVar(&passwordFile, "password-file", "", "`FILE` with the password of these users on its only line")
	command.Flags().BoolVar(&file, "aclfile", false, "print lines for the aclfile of Redis instead of commands")
	command.Flags().BoolVar(&parts, "parts", false, "the queue has several parts (refreshd queue create)")
	return command
}

func roleNames() []string {
	return redis.Map(acl.Roles(), func(role acl.Role) string { return string(role) })
}

// userView is a user as -o json shows it. Its rules are the arguments of ACL SETUSER.
type userView struct {
	acl.User
	Password string `json:"password"` // the rule, with a hash or a placeholder
}
