package platform

import (
	"net/http"
	"testing"

	"github.com/apache/openwhisk-client-go/whisk"

	"github.com/disdel/disdel"
)

// Another program's client again: the verbs that jobs do not use, each with a client of its own, since its calls change
// it.
func TestWithTheClientsOtherVerbs(t *testing.T) {
	p := start(t, nil)
	client := func() *whisk.Client {
		c, err := whisk.NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
			&whisk.Config{Host: p.URL(), AuthToken: p.AuthKey(), Namespace: "_"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ok := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	publish, text := true, "x"
	_, _, err := client().Packages.Insert(&whisk.Package{Name: "p", Publish: &publish}, false)
	ok("package", err)
	_, _, err = client().Packages.Insert(&whisk.BindingPackage{
		Name:    "b",
		Binding: whisk.Binding{Namespace: "_", Name: "p"},
	}, false)
	ok("binding", err)
	_, _, err = client().Actions.Insert(&whisk.Action{
		Name: "p/a",
		Exec: &whisk.Exec{Kind: disdel.RuntimeKind, Code: &text, Main: "mirror"},
	}, false)
	ok("action", err)
	_, _, err = client().Actions.Insert(&whisk.Action{
		Name: "s",
		Exec: &whisk.Exec{Kind: "sequence", Components: []string{"/_/b/a"}},
	}, false)
	ok("sequence", err)
	result, _, err := client().Actions.Invoke("s", map[string]any{"n": "1"}, true, true)
	if m, _ := result.(map[string]any); err != nil || m["n"] != "1" {
		t.Errorf("invoking the sequence: %v, %v", result, err)
	}
	_, _, err = client().Triggers.Insert(&whisk.Trigger{Name: "t"}, false)
	ok("trigger", err)
	_, _, err = client().Rules.Insert(&whisk.Rule{Name: "r", Trigger: "/_/t", Action: "/_/p/a"}, false)
	ok("rule", err)
	fired, _, err := client().Triggers.Fire("t", map[string]any{})
	if err != nil || len(fired.ActivationId) != 32 {
		t.Errorf("fire: %+v, %v", fired, err)
	}
	_, _, err = client().Rules.SetState("r", "inactive")
	ok("disable", err)
	if rule, _, err := client().Rules.Get("r"); err != nil || rule.Status != "inactive" {
		t.Errorf("rule: %+v, %v", rule, err)
	}
	if list, _, err := client().Packages.List(&whisk.PackageListOptions{}); err != nil || len(list) != 2 ||
		list[0].Name != "b" {
		t.Errorf("packages: %+v, %v", list, err)
	}
	if got, _, err := client().Packages.Get("b"); err != nil || len(got.Actions) != 1 {
		t.Errorf("binding: %+v, %v", got, err)
	}
	_, _, err = client().Packages.Refresh()
	ok("refresh", err)
	if info, _, err := client().Info.Get(); err != nil || info.Build != "embedded" {
		t.Errorf("info: %+v, %v", info, err)
	}
	_, err = client().Rules.Delete("r")
	ok("delete rule", err)
	_, _, err = client().Triggers.Delete("t")
	ok("delete trigger", err)
}
