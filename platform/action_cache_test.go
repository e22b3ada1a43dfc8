package platform

import "testing"

// Whatever changes on the way to an action is seen by the next invocation: the package's parameters, those of a
// binding, who may use it, and that it is gone.
func TestNothingOldIsFound(t *testing.T) {
	p := start(t, func(c *Config) { c.Namespaces = []Namespace{{Name: "alice", Key: aliceKey}} })
	must(t, p, "PUT", "_/packages/p", `{"publish":true}`)
	must(t, p, "PUT", "_/actions/p/a", code("mirror", ""))
	bound := ask(t, p, aliceKey, "PUT", "_/packages/b", `{"binding":{"namespace":"guest","name":"p"}}`)
	if bound.status != 200 {
		t.Fatal(bound.body)
	}
	invoke := func(key, path string) *replied {
		return ask(t, p, key, "POST", path+"?blocking=true&result=true", `{}`)
	}
	for _, c := range []struct{ put, body, mine, hers string }{
		{"", "", `{}`, `{}`},
		{"_/packages/p?overwrite=true", `{"parameters":[{"key":"x","value":1}]}`, `{"x":1}`, `{"x":1}`},
		{"_/actions/p/a?overwrite=true", `{"parameters":[{"key":"y","value":2}]}`, `{"x":1,"y":2}`, `{"x":1,"y":2}`},
		{"_/packages/p?overwrite=true", `{"publish":false}`, `{"x":1,"y":2}`, ""},
	} {
		if c.put != "" {
			must(t, p, "PUT", c.put, c.body)
		}
		if got := invoke(p.AuthKey(), "_/actions/p/a"); got.body != c.mine {
			t.Errorf("after %s %s: %s", c.put, c.body, got.body)
		}
		got := invoke(aliceKey, "_/actions/b/a")
		if c.hers == "" && got.status != 403 || c.hers != "" && got.body != c.hers {
			t.Errorf("after %s %s, through a binding: %d %s", c.put, c.body, got.status, got.body)
		}
	}
	must(t, p, "DELETE", "_/actions/p/a", "")
	if got := invoke(p.AuthKey(), "_/actions/p/a"); got.status != 404 {
		t.Errorf("after its deletion: %d %s", got.status, got.body)
	}
}

// A deleted action leaves no code in memory, whether it or its package was deleted.
func TestADeletedActionTakesNoMemory(t *testing.T) {
	p := start(t, nil)
	must(t, p, "PUT", "_/packages/p", "{}")
	for _, path := range []string{"_/actions/a", "_/actions/p/b", "_/actions/p/c"} {
		must(t, p, "PUT", path, code("mirror", ""))
		must(t, p, "GET", path, "")
	}
	must(t, p, "DELETE", "_/actions/a", "")
	must(t, p, "DELETE", "_/packages/p?force=true", "")
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if n := len(p.store.cache); n > 0 {
		t.Errorf("%d actions stay", n)
	}
}

// A state that somebody looked at before a change is not taken for the one after it.
func TestAFinderForgetsWithEveryChange(t *testing.T) {
	var f actionCache
	w := actionRoute{"guest", pathName{"guest", "a"}}
	old, young := &resolved{}, &resolved{}
	f.put(1, w, old)
	if f.get(1, w) != old || f.get(2, w) != nil {
		t.Error("what is known is not of its state")
	}
	f.put(2, w, young)
	f.put(1, w, old)
	if f.get(2, w) != young || f.get(1, w) != nil {
		t.Error("an older state wrote over a newer one")
	}
}
