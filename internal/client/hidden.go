package client

import (
	"encoding/json"
	"path/filepath"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/secrets"
)

// contextSecrets is what of a context nobody else is to read.
type contextSecrets struct {
	Token           string `json:"token,omitempty"`
	Key             string `json:"key,omitempty"`
	RedisPassword   string `json:"redisPassword,omitempty"`
	CouchDBPassword string `json:"couchdbPassword,omitempty"`
}

// taken is a context without its secrets, and those.
func (c Context) taken() (Context, contextSecrets) {
	s := contextSecrets{Token: c.Token}
	c.Token = ""
	if c.Cluster != nil {
		at := *c.Cluster
		s.Key, s.RedisPassword, s.CouchDBPassword = at.Key, at.RedisPassword, at.CouchDBPassword
		at.Key, at.RedisPassword, at.CouchDBPassword = "", "", ""
		c.Cluster = &at
	}
	return c, s
}

// account is what a context of a home is called in a keyring.
func account(home, name string) string {
	if whole, err := filepath.Abs(home); err == nil {
		home = whole
	}
	return name + " of " + home
}

// AddToKeyring is Add for a context whose secrets go into the keyring of this session. It returns what Add does,
// Invalid for a context without secrets, and Unavailable where there is no keyring.
func (c *Contexts) AddToKeyring(home string, one Context) error {
	if err := c.Add(one); err != nil {
		return err
	}
	bare, s := one.taken()
	if s == (contextSecrets{}) {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "add context", Msg: "there is no secret for the keyring to keep",
			Hint: "name it with --key-file or --token-file, or in DISDEL_AUTH or DISDEL_TOKEN for this one command",
		}
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = secrets.SaveToKeyring(account(home, one.Name), string(text))
	}
	if err != nil {
		return err
	}
	bare.Keyring = true
	return c.Add(bare)
}

// whole is a context of a home with its secrets, wherever they are kept.
func (c Context) whole(home string) (Context, error) {
	if !c.Keyring {
		return c, nil
	}
	text, err := secrets.ReadFromKeyring(account(home, c.Name))
	if err != nil {
		return c, err
	}
	var s contextSecrets
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return c, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read secrets", Msg: "the keyring has something else under the name of " + c.Name,
			Hint: "add the context again: disdel context add " + c.Name + " --keyring",
		}
	}
	c.Token = s.Token
	if c.Cluster != nil {
		at := *c.Cluster
		at.Key, at.RedisPassword, at.CouchDBPassword = s.Key, s.RedisPassword, s.CouchDBPassword
		c.Cluster = &at
	}
	return c, nil
}
