package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	library "github.com/zalando/go-keyring"

	"github.com/disdel/disdel"
)

// A context in a keyring is what it is in a file, and the file has none of its secrets.
func TestSecretsOfAContextInAKeyring(t *testing.T) {
	library.MockInit()
	home := t.TempDir()
	prod := Cluster{
		APIHost: "https://whisk.example", Key: "user:hidden-key", Redis: "rediss://r.example/0",
		RedisPassword: "hidden-redis", CouchDB: "https://c.example", CouchDBPassword: "hidden-couchdb",
	}
	var known Contexts
	for _, one := range []Context{
		{Name: "prod", Cluster: &prod}, {Name: "lab", Server: "https://train.example:7070", Token: "hidden-token"},
	} {
		if err := known.AddToKeyring(home, one); err != nil {
			t.Fatal(err)
		}
	}
	if err := known.Write(home); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(home, "contexts.json"))
	if err != nil || strings.Contains(string(text), "hidden") {
		t.Errorf("%v\n%s", err, text)
	}
	_, cluster, err := ChooseCluster(Chosen{Home: home, Context: "prod"})
	if err != nil || *cluster != prod {
		t.Errorf("%+v, %v", cluster, err)
	}
	for _, by := range []Chosen{{Home: home, Context: "lab"}, {Home: home, Server: "https://train.example:7070"}} {
		if server, err := Choose(by); err != nil || server.Token != "hidden-token" {
			t.Errorf("%+v, %v", server, err)
		}
	}
	if known, err = ReadContexts(home); err != nil {
		t.Fatal(err)
	}
	if err := known.Remove(home, "prod"); err != nil {
		t.Fatal(err)
	}
	if _, err := library.Get("disdel", account(home, "prod")); !errors.Is(err, library.ErrNotFound) {
		t.Errorf("after it was removed: %v", err)
	}
}

// Two homes may have contexts of one name; what the keyring has not is said, and so is that there is nothing to keep.
func TestAKeyringThatHasNoSecretsOfAContext(t *testing.T) {
	library.MockInit()
	home, other := t.TempDir(), t.TempDir()
	var known Contexts
	one := Context{Name: "lab", Server: "https://train.example:7070", Token: "hidden-token"}
	if err := errors.Join(known.AddToKeyring(home, one), known.Write(other)); err != nil {
		t.Fatal(err)
	}
	if _, err := Choose(Chosen{Home: other, Context: "lab"}); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("%v", err)
	}
	one.Token = ""
	if err := known.AddToKeyring(home, one); disdel.KindOf(err) != disdel.Invalid {
		t.Errorf("%v", err)
	}
	library.MockInitWithError(errors.New("no bus"))
	one.Token = "hidden-token"
	if err := known.AddToKeyring(home, one); disdel.KindOf(err) != disdel.Unavailable ||
		strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v", err)
	}
}
