package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/secrets"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/batch"
)

// Context is a named server with a token, or a named cluster for commands that run jobs from this process.
type Context struct {
	Name    string   `json:"name"`
	Server  string   `json:"server,omitempty"` // "": Cluster is there
	Token   string   `json:"token,omitempty"`
	Clear   bool     `json:"clear,omitempty"` // see Server.Clear
	Cluster *Cluster `json:"cluster,omitempty"`
	Keyring bool     `json:"keyring,omitempty"` // its secrets are in the session's keyring, and not here
}

// Contexts are the contexts of a home, and the current one.
type Contexts struct {
	Current string    `json:"current,omitempty"` // "": none, commands are carried out in their own process
	List    []Context `json:"contexts"`
}

// InProcess is the context without a server or cluster.
const InProcess = "local"

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func contextsFile(home string) string { return filepath.Join(home, "contexts.json") }

// ReadContexts reads the contexts of a home; a missing file has none. It returns Denied if others may read the file.
func ReadContexts(home string) (c Contexts, err error) {
	path := contextsFile(home)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return c, &disdel.Error{
			Kind: disdel.Denied, Op: "read contexts", Msg: "others may read the tokens in " + path, Hint: "chmod 600 " + path,
		}
	}
	text, err := files.Read(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, &disdel.Error{Kind: disdel.Corrupt, Op: "read contexts", Msg: path, Err: err}
	}
	return c, nil
}

// Write writes the contexts to a file that only its owner may read.
func (c Contexts) Write(home string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.WriteWhole(contextsFile(home), ".contexts-*", append(text, '\n'))
}

// Add adds a context, or replaces the one of its name.
func (c *Contexts) Add(one Context) error {
	if !contextName.MatchString(one.Name) || one.Name == InProcess {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "add context", Msg: fmt.Sprintf("%.80q is no name of a context", one.Name),
			Hint: "use letters, digits, dots and dashes; " + InProcess + " means no server",
		}
	}
	if err := one.check(); err != nil {
		return err
	}
	c.List = slices.DeleteFunc(c.List, func(o Context) bool { return o.Name == one.Name })
	c.List = append(c.List, one)
	return nil
}

// check returns Invalid for addresses that are none.
func (c Context) check() error {
	if c.Cluster != nil {
		return c.Cluster.check()
	}
	_, err := Remote(c.server())
	return err
}

func (c Context) server() Server { return Server{URL: c.Server, Token: c.Token, Clear: c.Clear} }

// Find returns the context of a name. It returns NotFound.
func (c *Contexts) Find(name string) (Context, error) {
	for _, one := range c.List {
		if one.Name == name {
			return one, nil
		}
	}
	return Context{}, &disdel.Error{
		Kind: disdel.NotFound, Op: "find context", Msg: fmt.Sprintf("there is no context %.80q", name),
		Hint: "disdel context list",
	}
}

// Remove deletes a context and its secrets. It returns NotFound.
func (c *Contexts) Remove(home, name string) error {
	one, err := c.Find(name)
	if err == nil && one.Keyring {
		err = secrets.DeleteFromKeyring(account(home, name))
	}
	if err != nil {
		return err
	}
	c.List = slices.DeleteFunc(c.List, func(o Context) bool { return o.Name == name })
	if c.Current == name {
		c.Current = ""
	}
	return nil
}

// Chosen is the choice of a server or context by a command.
type Chosen struct {
	Home    string
	Server  string // an address; "": none is given
	Context string // a name; "": none is given
	Token   string // "": that of the context, or on this machine of who runs the server
}

// Choose returns the server for a command: that of the address, else of the context, else of the current context. It is
// nil if there is none, or if the context is a cluster.
func Choose(by Chosen) (*Server, error) {
	known, err := ReadContexts(by.Home)
	if err != nil {
		return nil, err
	}
	if by.Server != "" {
		at := Server{URL: by.Server}
		for _, one := range known.List {
			if one.Server != by.Server {
				continue
			}
			if one, err = one.withSecrets(by.Home); err != nil {
				return nil, err
			}
			at = one.server()
		}
		return at.with(by), nil
	}
	name := by.Context
	if name == "" {
		name = known.Current
	}
	if name == "" || name == InProcess {
		return nil, nil
	}
	one, err := known.Find(name)
	if err == nil && one.Cluster == nil {
		one, err = one.withSecrets(by.Home)
	}
	if err != nil || one.Cluster != nil {
		return nil, err
	}
	return one.server().with(by), nil
}

// with returns the server with the chosen token, or if no token is known with that of the operator of a server in the
// home.
func (s Server) with(by Chosen) *Server {
	if by.Token != "" {
		s.Token = by.Token
	}
	if s.Token == "" {
		s.Token = operatorToken(by.Home, s.URL)
	}
	return &s
}

// Cluster is an OpenWhisk with the servers that jobs there need, as a context keeps it. Passwords are apart from
// addresses, so that addresses can be shown.
type Cluster struct {
	APIHost         string `json:"apihost"`
	Key             string `json:"key,omitempty"` // user:key
	Image           string `json:"image,omitempty"`
	Storage         string `json:"storage,omitempty"`
	Redis           string `json:"redis,omitempty"`
	RedisPassword   string `json:"redisPassword,omitempty"`
	RedisPrefix     string `json:"redisPrefix,omitempty"`
	RedisCA         string `json:"redisCA,omitempty"` // file in PEM
	CouchDB         string `json:"couchdb,omitempty"`
	CouchDBPassword string `json:"couchdbPassword,omitempty"`
}

// Setting is one part of a Cluster, with its name on the command line.
type Setting struct {
	Flag     string // "": a secret, which no flag takes
	Variable string
	Value    string // "": unset
	Address  string // of a secret: the flag of the address that it is for, and for no other
}

// Settings lists the parts of a cluster, each address before its secret.
func (c *Cluster) Settings() []Setting {
	return []Setting{
		{Flag: "apihost", Variable: "DISDEL_APIHOST", Value: c.APIHost},
		{Variable: "DISDEL_AUTH", Value: c.Key, Address: "apihost"},
		{Flag: "image", Variable: "DISDEL_IMAGE", Value: c.Image},
		{Flag: "storage", Variable: "DISDEL_STORAGE", Value: c.Storage},
		{Flag: "redis", Variable: "DISDEL_REDIS", Value: c.Redis},
		{Variable: "DISDEL_REDIS_PASSWORD", Value: c.RedisPassword, Address: "redis"},
		{Flag: "redis-prefix", Variable: "DISDEL_REDIS_PREFIX", Value: c.RedisPrefix},
		{Flag: "redis-ca", Variable: "DISDEL_REDIS_CA", Value: c.RedisCA},
		{Flag: "couchdb", Variable: "DISDEL_COUCHDB", Value: c.CouchDB},
		{Variable: "DISDEL_COUCHDB_PASSWORD", Value: c.CouchDBPassword, Address: "couchdb"},
	}
}

// check returns Invalid for a wrong address, and for one that has a password in it: in an argument other users of the
// machine can read it, and a list of contexts shows addresses.
func (c *Cluster) check() error {
	if err := addresses.CheckAPIHost(c.APIHost); err != nil {
		return err
	}
	for _, field := range []struct{ list, variable string }{
		{c.Redis, "DISDEL_REDIS_PASSWORD"}, {c.CouchDB, "DISDEL_COUCHDB_PASSWORD"},
	} {
		for _, address := range addresses.RedisServers(field.list) {
			u, err := url.Parse(address)
			if err != nil {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "add context", Msg: fmt.Sprintf("%q is no URL", disdel.Redacted(address)),
					Hint: "a password goes into " + field.variable,
				}
			}
			if _, secret := u.User.Password(); secret {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "add context",
					Msg:  disdel.Redacted(address) + " has a password in it, which other users of this machine can read",
					Hint: "leave it out, and put it into " + field.variable + " for this one command: the context keeps it",
				}
			}
		}
	}
	return nil
}

// ChooseCluster returns the cluster for a command, and the name of its context; nil if the command goes to a server, or
// nothing is chosen.
func ChooseCluster(by Chosen) (name string, c *Cluster, err error) {
	if by.Server != "" {
		return "", nil, nil
	}
	known, err := ReadContexts(by.Home)
	if err != nil {
		return "", nil, err
	}
	if name = by.Context; name == "" {
		name = known.Current
	}
	if name == "" || name == InProcess {
		return "", nil, nil
	}
	one, err := known.Find(name)
	if err == nil && one.Cluster != nil {
		one, err = one.withSecrets(by.Home)
	}
	return name, one.Cluster, err
}

// contextSecrets are the secret parts of a context.
type contextSecrets struct {
	Token           string `json:"token,omitempty"`
	Key             string `json:"key,omitempty"`
	RedisPassword   string `json:"redisPassword,omitempty"`
	CouchDBPassword string `json:"couchdbPassword,omitempty"`
}

// withoutSecrets divides a context into its public part and its secrets.
func (c Context) withoutSecrets() (Context, contextSecrets) {
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

// account is the name of a context in a keyring.
func account(home, name string) string {
	if abs, err := filepath.Abs(home); err == nil {
		home = abs
	}
	return name + " of " + home
}

// AddToKeyring is Add with the secrets in the keyring of this session. It returns the errors of Add, Invalid for a
// context without secrets, and Unavailable if there is no keyring.
func (c *Contexts) AddToKeyring(home string, one Context) error {
	if err := c.Add(one); err != nil {
		return err
	}
	bare, s := one.withoutSecrets()
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

// withSecrets returns a context with its secrets, from the file or the keyring.
func (c Context) withSecrets(home string) (Context, error) {
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

// Place returns the Client as a place for the jobs of a batch.
func (c Client) Place() batch.Place {
	return batch.Place{
		Submit: func(ctx context.Context, req service.Request) (batch.Run, error) {
			run, err := c.Jobs.Submit(ctx, req)
			if err != nil {
				return nil, err
			}
			return run, nil
		},
		Check: c.Jobs.Check, Estimate: c.Jobs.Estimate,
	}
}

// operatorToken returns the token of the operator of a server on this machine, "" if there is none or the server is
// elsewhere.
func operatorToken(home, server string) string {
	u, err := url.Parse(server)
	if err != nil || !addresses.Loopback(u.Hostname()) {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(home, "server.token"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
