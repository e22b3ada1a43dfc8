package aggregator

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/disdel/disdel"
)

// AddUser lets a user work with the keys of a prefix and nothing else, see ACL, on every server of the store; one that
// is there gets the password and the rule anew, and continues with what it does. It returns Denied where a server does
// not let the store's own user make others, or knows none. What the server says of it is told to nobody: it repeats
// the password.
func (s *Store) AddUser(ctx context.Context, name, password, prefix string) error {
	command := []any{"ACL", "SETUSER", name, "on", "resetpass", ">" + password}
	for word := range strings.FieldsSeq(ACL(prefix)) {
		command = append(command, word)
	}
	for _, server := range s.servers {
		err := server.Do(ctx, command...).Err()
		var said redis.Error
		switch {
		case errors.As(err, &said):
			return &disdel.Error{
				Kind: disdel.Denied, Op: "add user", Msg: "Redis does not let its user add others, or knows none",
				Hint: "give the user of the address +acl|setuser",
			}
		case err != nil:
			return wrap(err, "add user", name)
		}
	}
	return nil
}
