package client

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/addresses"
)

// Cluster is an OpenWhisk of the user's with the servers that jobs there need, as a context keeps it. Passwords stand
// apart from addresses, so that an address can be shown.
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

// Setting is one part of a Cluster, under the names that the command line has for it.
type Setting struct {
	Flag     string // "": a secret, which no flag takes
	Variable string
	Value    string // "": nothing is said
	Address  string // of a secret: the flag of the address that it is for, and for no other
}

// Settings is everything that a cluster says, each address before the secret for it.
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

// check returns Invalid for an address that is none, or that has a password in it: in an argument other users of the
// machine can read it, and a list of contexts shows addresses.
func (c *Cluster) check() error {
	if err := addresses.CheckAPIHost(c.APIHost); err != nil {
		return err
	}
	for _, of := range []struct{ list, variable string }{
		{c.Redis, "DISDEL_REDIS_PASSWORD"}, {c.CouchDB, "DISDEL_COUCHDB_PASSWORD"},
	} {
		for address := range strings.SplitSeq(of.list, ",") {
			u, err := url.Parse(strings.TrimSpace(address))
			if err != nil {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "add context", Msg: fmt.Sprintf("%q is no URL", disdel.Redacted(address)),
					Hint: "a password goes into " + of.variable,
				}
			}
			if _, secret := u.User.Password(); secret {
				return &disdel.Error{
					Kind: disdel.Invalid, Op: "add context",
					Msg:  disdel.Redacted(address) + " has a password in it, which other users of this machine can read",
					Hint: "leave it out, and put it into " + of.variable + " for this one command: the context keeps it",
				}
			}
		}
	}
	return nil
}

// ChooseCluster is the cluster that commands of this process go to, and the name of its context; nil where a server
// carries them out, or nothing was said.
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
		one, err = one.whole(by.Home)
	}
	return name, one.Cluster, err
}
