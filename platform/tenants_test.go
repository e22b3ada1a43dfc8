package platform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// A namespace that is added has its own key, throttles and entities, outlives the platform, and is nobody once removed.
func TestNamespacesAreAddedAndRemoved(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	withData := func(c *Config) { c.DataDir = data }
	p := start(t, withData)
	made, err := p.PutNamespace(Namespace{Name: "carol", InvocationsPerMinute: 3}, false)
	if err != nil || len(made.Key) < 60 {
		t.Fatalf("%+v, %v", made, err)
	}
	if got := ask(t, p, made.Key, "PUT", "_/actions/a", code("echo", "")); got.status != 200 ||
		got.at("namespace") != "carol" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := ask(t, p, made.Key, "GET", "_/limits", ""); got.at("invocationsPerMinute") != 3.0 ||
		got.at("firesPerMinute") == 0.0 {
		t.Errorf("%s", got.body)
	}
	if got := ask(t, p, p.AuthKey(), "GET", "carol/actions", ""); got.status != 403 {
		t.Errorf("guest in carol's: %d", got.status)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	p = start(t, withData)
	if got := ask(t, p, made.Key, "GET", "_/actions/a", ""); got.status != 200 {
		t.Errorf("after a restart: %d %s", got.status, got.body)
	}
	changed, err := p.PutNamespace(Namespace{Name: "carol", Key: "uuid:a-key-of-her-own-choice", FiresPerMinute: 1}, true)
	if err != nil || changed.Key == made.Key {
		t.Errorf("%+v, %v", changed, err)
	}
	for key, want := range map[string]int{made.Key: 401, changed.Key: 200} {
		if got := ask(t, p, key, "GET", "_/actions/a", ""); got.status != want {
			t.Errorf("%s: %d, want %d", key, got.status, want)
		}
	}
	if kept, err := p.PutNamespace(Namespace{Name: "carol"}, true); err != nil || kept.Key != changed.Key ||
		kept.InvocationsPerMinute != 3 {
		t.Errorf("a change without a key changes it: %+v, %v", kept, err)
	}
	if err := p.RemoveNamespace("carol"); err != nil {
		t.Error(err)
	}
	if got := ask(t, p, changed.Key, "GET", "_/actions/a", ""); got.status != 401 {
		t.Errorf("once removed: %d", got.status)
	}
	again, err := p.PutNamespace(Namespace{Name: "carol"}, false)
	if err != nil || again.Key == changed.Key {
		t.Errorf("%+v, %v", again, err)
	}
	if got := ask(t, p, again.Key, "GET", "_/actions/a", ""); got.status != 200 {
		t.Errorf("what she had is gone: %d %s", got.status, got.body)
	}
	if info, err := os.Stat(filepath.Join(data, "platform.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys is %v, %v", info.Mode(), err)
	}
}

func TestNamespacesThatCannotBe(t *testing.T) {
	p := start(t, withNamespaces)
	if _, err := p.PutNamespace(Namespace{Name: "carol", Key: "uuid:a-secret-of-carols"}, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n         Namespace
		overwrite bool
		want      disdel.Kind
	}{
		{Namespace{Name: "carol"}, false, disdel.Conflict},
		{Namespace{Name: "guest"}, false, disdel.Conflict},
		{Namespace{Name: "guest"}, true, disdel.Invalid},
		{Namespace{Name: "alice"}, true, disdel.Invalid},
		{Namespace{Name: "dave", Key: "uuid:a-secret-of-carols"}, false, disdel.Conflict},
		{Namespace{Name: "dave", Key: p.AuthKey()}, false, disdel.Conflict},
		{Namespace{Name: "dave", Key: "nocolon-but-long-enough"}, false, disdel.Invalid},
		{Namespace{Name: "dave", Key: "uuid:short"}, false, disdel.Invalid},
		{Namespace{Name: "dave", Key: "uuid:with a blank in it, long"}, false, disdel.Invalid},
		{Namespace{Name: "dave", Key: "uuid:with\na line in it, long"}, false, disdel.Invalid},
		{Namespace{Name: ""}, false, disdel.Invalid},
		{Namespace{Name: "a/b"}, false, disdel.Invalid},
		{Namespace{Name: "../x"}, false, disdel.Invalid},
		{Namespace{Name: "dave", InvocationsPerMinute: -1}, false, disdel.Invalid},
	} {
		if _, err := p.PutNamespace(c.n, c.overwrite); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.n, err, c.want)
		}
	}
	for name, want := range map[string]disdel.Kind{
		"nobody": disdel.NotFound, "guest": disdel.Invalid,
		"bob": disdel.Invalid,
	} {
		if err := p.RemoveNamespace(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if names := p.Namespaces(); len(names) != 4 || names[0].Name != "guest" || names[3].Name != "carol" {
		t.Errorf("%+v", names)
	}
}

// The packages of OpenWhisk's documents are there when they are asked for, and stay as they are.
func TestTheCatalogServesEveryNamespace(t *testing.T) {
	p, _ := startScripts(t, "nodejs:")
	for range 2 {
		if err := p.InstallCatalog(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, args, want string }{
		{"utils/echo", `{"a":[1]}`, `{"a":[1]}`},
		{"utils/cat", `{"lines":[4,2,3]}`, `{"lines":[4,2,3],"payload":"4\n2\n3"}`},
		{"utils/smash", `{"a":1,"b":{"c":2},"$fieldName":"p"}`, `{"p":{"a":1,"b":{"c":2}}}`},
		{
			"utils/split", `{"payload":"one,two,three","separator":","}`,
			`{"lines":["one","two","three"],"payload":"one,two,three"}`,
		},
		{"utils/split", `{"payload":"a\nb"}`, `{"lines":["a","b"],"payload":"a\nb"}`},
		{"utils/sort", `{"lines":[4,2,3]}`, `{"lines":[2,3,4],"length":3}`},
		{"utils/head", `{"lines":[4,2,3],"num":2}`, `{"lines":[4,2],"num":2}`},
		{"utils/head", `{"lines":[4,2,3]}`, `{"lines":[4],"num":1}`},
		{"utils/date", `{}`, `{"date":"20`},
		{"utils/namespace", `{}`, `{"namespace":"guest"}`},
		{"utils/hosturl", `{"web":true,"path":"utils/echo"}`, `{"url":"` + p.URL() + `/api/v1/web/guest/utils/echo.json"}`},
		{"utils/hosturl", `{"trigger":true,"path":"t"}`, `{"url":"` + p.URL() + `/api/v1/namespaces/guest/triggers/t"}`},
		{"samples/greeting", `{"name":"Cat","place":"Narrowsburg"}`, `{"payload":"Hello, Cat from Narrowsburg!"}`},
		{"samples/wordCount", `{"payload":"Five fuzzy felines"}`, `{"count":3}`},
		{"samples/helloWorld", `{"payload":"Cat"}`, `{}`},
	} {
		got := must(t, p, "POST", "whisk.system/actions/"+c.name+"?blocking=true&result=true", c.args)
		if !strings.HasPrefix(got.body, c.want) {
			t.Errorf("%s %s: %s, want %s", c.name, c.args, got.body, c.want)
		}
	}
	if got := must(t, p, "GET", "whisk.system/packages", ""); got.at("1.name") == nil || got.at("2") != nil {
		t.Errorf("%s", got.body)
	}
	if got := must(t, p, "GET", "whisk.system/actions/utils/echo", ""); got.at("version") != "0.0.1" {
		t.Errorf("a second start changed it: %s", got.body)
	}
	if got := ask(t, p, p.AuthKey(), "DELETE", "whisk.system/actions/utils/echo", ""); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
	none := start(t, nil)
	if err := none.InstallCatalog(); !errors.Is(err, disdel.Invalid) {
		t.Errorf("without Node.js: %v", err)
	}
}

func TestPrewarmedContainersAreAskedForInAWord(t *testing.T) {
	for text, want := range map[string]Prewarm{
		"nodejs:20@256MB=2": {"nodejs:20", 256 * disdel.MB, 2}, "disdel:1@1GB": {"disdel:1", disdel.GB, 1},
	} {
		if got, err := ParsePrewarm(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "nodejs:20", "nodejs:20@", "@256MB", "a@256MB=0", "a@256MB=x", "a@=1", "a@b=1"} {
		if got, err := ParsePrewarm(text); !errors.Is(err, disdel.Invalid) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
