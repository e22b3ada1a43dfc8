package aggregator

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// AddUser lets a user work with the keys of a prefix and nothing else, see ACL, on every server of the store; one that
// is there gets the password and the rule anew, and goes on with what it does. It returns Denied where the store's own
// user may not make users, and Invalid for a server that knows none, such as the embedded one.
func (s *Store) AddUser(ctx context.Context, name, password, prefix string) error {
	command := []any{"ACL", "SETUSER", name, "on", "resetpass", ">" + password}
	for word := range strings.FieldsSeq(ACL(prefix)) {
		command = append(command, word)
	}
	for _, server := range s.servers {
		switch err := server.Do(ctx, command...).Err(); {
		case err == nil:
		case redis.HasErrorPrefix(err, "NOPERM"):
			return &disdel.Error{
				Kind: disdel.Denied, Op: "add user", Msg: "Redis does not let its user add others",
				Hint: "give that user +acl|setuser",
			}
		case redis.HasErrorPrefix(err, "ERR unknown command"):
			return &disdel.Error{Kind: disdel.Invalid, Op: "add user", Msg: "Redis knows no users"}
		default:
			return wrap(err, "add user", name) // which names no password: go-redis' errors have the server's text alone
		}
	}
	return nil
}
