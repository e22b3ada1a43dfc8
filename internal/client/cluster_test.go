package client

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// A context is a server or a cluster, and commands go to one of them.
func TestAContextIsAServerOrACluster(t *testing.T) {
	home := t.TempDir()
	known := Contexts{Current: "prod"}
	for _, one := range []Context{
		{Name: "lab", Server: "https://train.example:7070", Token: "t"},
		{Name: "prod", Cluster: &Cluster{APIHost: "https://whisk.example", Key: "a:b", Redis: "rediss://r.example/0"}},
	} {
		if err := known.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := known.Write(home); err != nil {
		t.Fatal(err)
	}
	for by, want := range map[Chosen]struct{ server, cluster string }{
		{Home: home}:                                {cluster: "https://whisk.example"},
		{Home: home, Context: "lab"}:                {server: "https://train.example:7070"},
		{Home: home, Context: "prod"}:               {cluster: "https://whisk.example"},
		{Home: home, Context: "local"}:              {},
		{Home: home, Server: "https://h.example:1"}: {server: "https://h.example:1"},
	} {
		server, err := Choose(by)
		if err != nil {
			t.Fatal(err)
		}
		_, cluster, err := ChooseCluster(by)
		if err != nil {
			t.Fatal(err)
		}
		if (server != nil) != (want.server != "") || server != nil && server.URL != want.server ||
			(cluster != nil) != (want.cluster != "") || cluster != nil && cluster.APIHost != want.cluster {
			t.Errorf("%+v: %+v, %+v", by, server, cluster)
		}
	}
}

// No address of a context has a password in it, since contexts are shown.
func TestAddressesOfContextsHaveNoPasswords(t *testing.T) {
	for _, c := range []Cluster{
		{APIHost: "https://whisk.example", Redis: "redis://a/0, redis://:visible@b/0"},
		{APIHost: "https://whisk.example", CouchDB: "https://u:visible@c"},
		{APIHost: "https://visible@whisk.example"},
		{APIHost: ""},
	} {
		var known Contexts
		err := known.Add(Context{Name: "prod", Cluster: &c})
		if disdel.KindOf(err) != disdel.Invalid || strings.Contains(err.Error(), "visible") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A secret goes with the address that it is for.
func TestEverySecretHasAnAddress(t *testing.T) {
	flags := map[string]bool{}
	for _, s := range (&Cluster{}).Settings() {
		if s.Flag == "" && !flags[s.Address] {
			t.Errorf("%s comes without its address, or before it", s.Variable)
		}
		flags[s.Flag] = true
	}
}
