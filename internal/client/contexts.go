package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
	"github.com/disdel/disdel/internal/secrets"
)

// Context is a server under a name, and the token for it; or a cluster, which commands of this process work with.
type Context struct {
	Name    string   `json:"name"`
	Server  string   `json:"server,omitempty"` // "": Cluster is there
	Token   string   `json:"token,omitempty"`
	Clear   bool     `json:"clear,omitempty"` // see Server.Clear
	Cluster *Cluster `json:"cluster,omitempty"`
	Keyring bool     `json:"keyring,omitempty"` // its secrets are in the session's keyring, and not here
}

// Contexts is the servers that a home knows, and which of them commands go to.
type Contexts struct {
	Current string    `json:"current,omitempty"` // "": none, commands are carried out in their own process
	List    []Context `json:"contexts"`
}

// InProcess is the name of no server.
const InProcess = "local"

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func contextsFile(home string) string { return filepath.Join(home, "contexts.json") }

// ReadContexts reads what a home knows; nothing where it has no file. It returns Denied for a file that others may
// read.
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

// Write keeps them, readable only by their owner.
func (c Contexts) Write(home string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return files.WriteWhole(contextsFile(home), ".contexts-*", append(text, '\n'))
}

// Add adds a server, or replaces the one of its name.
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

// Find is the server of a name. It returns NotFound.
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

// Remove forgets a server, and its secrets with it. It returns NotFound.
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

// Chosen says which server a command goes to.
type Chosen struct {
	Home    string
	Server  string // an address; "": none is said
	Context string // a name; "": none is said
	Token   string // "": that of the context, or on this machine of who runs the server
}

// Choose is the server that a command goes to, nil for none, as for a cluster's context: the address that was said,
// else the context, else the current one.
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
			if one, err = one.whole(by.Home); err != nil {
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
		one, err = one.whole(by.Home)
	}
	if err != nil || one.Cluster != nil {
		return nil, err
	}
	return one.server().with(by), nil
}

// with is the server with the token that was said, or, where none is known, that of who runs one in the home.
func (s Server) with(by Chosen) *Server {
	if by.Token != "" {
		s.Token = by.Token
	}
	if s.Token == "" {
		s.Token = operatorToken(by.Home, s.URL)
	}
	return &s
}
