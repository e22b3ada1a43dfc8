package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/apache/openwhisk-client-go/whisk"
)

// recorder collects the steps of a Go client.
type recorder struct{ steps []step }

// do makes one call and keeps what came; an error is kept with its exit code, which has the status.
func (r *recorder) do(tag, name string, call func() (any, *http.Response, error)) {
	s := step{tag: tag, name: name}
	if !s.skipped() {
		time.Sleep(2 * time.Millisecond) // lists are ordered by the millisecond of the last change
		v, res, err := call()
		if err != nil {
			s.out = fmt.Sprintf("%T: %v\n", err, err)
			if e, ok := err.(*whisk.WskError); ok {
				s.out = fmt.Sprintf("WskError: %v [exit %d, application error %t, timed out %t]\n", err, e.ExitCode,
					e.ApplicationError, e.TimedOut)
			}
		}
		if res != nil {
			s.out = fmt.Sprintf("HTTP %d\n", res.StatusCode) + s.out
		}
		data, _ := json.Marshal(v)
		s.out += string(data) + "\n"
	}
	r.steps = append(r.steps, s)
}

// openwhisk-client-go, over every verb it has.
func TestClientGo(t *testing.T) {
	p := start(t)
	c, err := whisk.NewClient(&http.Client{Timeout: 75 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		&whisk.Config{
			Host: p.URL(), AuthToken: p.AuthKey(), Namespace: "_", Version: "v1",
		})
	if err != nil {
		t.Fatal(err)
	}
	var r recorder
	code := "function main(args) { return args }"
	action := func(name, behaviour string) *whisk.Action {
		return &whisk.Action{Name: name, Exec: &whisk.Exec{Kind: testKind, Code: &code, Main: behaviour}}
	}
	create := func(name, behaviour string) func() (any, *http.Response, error) {
		return func() (any, *http.Response, error) { return wrap(c.Actions.Insert(action(name, behaviour), false)) }
	}
	var id string
	invoke := func(name string, args any, blocking, result bool) func() (any, *http.Response, error) {
		return func() (any, *http.Response, error) {
			v, res, err := c.Actions.Invoke(name, args, blocking, result)
			if m, ok := v.(map[string]any); ok {
				if s, ok := m["activationId"].(string); ok {
					id = s
				}
			}
			return v, res, err
		}
	}
	remove := func(f func(string) (*http.Response, error), name string) func() (any, *http.Response, error) {
		return func() (any, *http.Response, error) {
			res, err := f(name)
			return nil, res, err
		}
	}
	// The record of an activation comes at its end.
	record := func() (any, *http.Response, error) {
		for range 100 {
			if a, res, err := c.Activations.Get(id); err == nil {
				return a, res, nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return wrap(c.Activations.Get(id))
	}

	r.do("", "Info.Get", func() (any, *http.Response, error) { return wrap(c.Info.Get()) })
	r.do("", "Packages.Insert", func() (any, *http.Response, error) {
		return wrap(c.Packages.Insert(&whisk.Package{
			Name:       "pkg",
			Parameters: whisk.KeyValueArr{{Key: "who", Value: "package"}},
		}, false))
	})
	r.do("", "Packages.Insert again", func() (any, *http.Response, error) {
		return wrap(c.Packages.Insert(&whisk.Package{Name: "pkg"}, false))
	})
	r.do("", "Packages.Insert overwriting", func() (any, *http.Response, error) {
		return wrap(c.Packages.Insert(&whisk.Package{Name: "pkg", Annotations: whisk.KeyValueArr{{Key: "x", Value: 1}}},
			true))
	})
	r.do("binding", "Packages.Insert binding", func() (any, *http.Response, error) {
		return wrap(c.Packages.Insert(&whisk.BindingPackage{
			Name:    "bound",
			Binding: whisk.Binding{Namespace: "guest", Name: "pkg"},
		}, false))
	})
	r.do("binding", "Packages.Get binding", func() (any, *http.Response, error) { return wrap(c.Packages.Get("bound")) })
	r.do("", "Packages.Get", func() (any, *http.Response, error) { return wrap(c.Packages.Get("pkg")) })
	r.do("", "Packages.Get missing", func() (any, *http.Response, error) { return wrap(c.Packages.Get("nothing")) })
	r.do("", "Packages.List", func() (any, *http.Response, error) {
		return wrap(c.Packages.List(&whisk.PackageListOptions{Limit: 1}))
	})
	r.do("binding", "Packages.List public", func() (any, *http.Response, error) {
		return wrap(c.Packages.List(&whisk.PackageListOptions{Public: true}))
	})

	r.do("", "Actions.Insert", create("echo", "main"))
	r.do("", "Actions.Insert again", create("echo", "main"))
	r.do("", "Actions.Insert overwriting", func() (any, *http.Response, error) {
		a := action("echo", "main")
		timeout, memory := 30000, 128
		a.Limits = &whisk.Limits{Timeout: &timeout, Memory: &memory}
		a.Parameters = whisk.KeyValueArr{{Key: "a", Value: 1}}
		return wrap(c.Actions.Insert(a, true))
	})
	r.do("", "Actions.Insert in package", create("pkg/double", "double"))
	r.do("", "Actions.Insert fail", create("fail", "fail"))
	r.do("", "Actions.Insert logs", create("logs", "logs"))
	r.do("kind", "Actions.Insert with a kind that is not", func() (any, *http.Response, error) {
		return wrap(c.Actions.Insert(&whisk.Action{Name: "missing", Exec: &whisk.Exec{Kind: "cobol:85", Code: &code}}, false))
	})
	r.do("", "Actions.Get", func() (any, *http.Response, error) { return wrap(c.Actions.Get("echo", true)) })
	r.do("", "Actions.Get without code",
		func() (any, *http.Response, error) { return wrap(c.Actions.Get("pkg/double", false)) })
	r.do("", "Actions.Get missing", func() (any, *http.Response, error) { return wrap(c.Actions.Get("nothing", true)) })
	r.do("", "Actions.List", func() (any, *http.Response, error) {
		return wrap(c.Actions.List("", &whisk.ActionListOptions{Limit: 2}))
	})
	r.do("", "Actions.List of package",
		func() (any, *http.Response, error) { return wrap(c.Actions.List("pkg", &whisk.ActionListOptions{})) })
	r.do("", "Actions.Invoke", invoke("echo", map[string]any{"b": "ü"}, false, false))
	r.do("", "Activations.Get", record)
	r.do("", "Actions.Invoke blocking", invoke("echo", map[string]any{"b": 2}, true, false))
	r.do("", "Actions.Invoke result", invoke("pkg/double", map[string]any{"n": 21}, true, true))
	r.do("", "Actions.Invoke without parameters", invoke("echo", nil, true, true))
	r.do("", "Actions.Invoke fail", invoke("fail", nil, true, false))
	r.do("", "Actions.Invoke fail result", invoke("fail", nil, true, true))
	r.do("", "Actions.Invoke missing", invoke("nothing", nil, true, false))
	r.do("binding", "Actions.Invoke bound", invoke("bound/double", map[string]any{"n": 1}, true, true))

	r.do("sequence", "Actions.Insert sequence", func() (any, *http.Response, error) {
		return wrap(c.Actions.Insert(&whisk.Action{
			Name: "seq",
			Exec: &whisk.Exec{Kind: "sequence", Components: []string{"/_/pkg/double", "/guest/pkg/double"}},
		}, false))
	})
	r.do("sequence", "Actions.Get sequence",
		func() (any, *http.Response, error) { return wrap(c.Actions.Get("seq", true)) })
	r.do("sequence", "Actions.Invoke sequence", invoke("seq", map[string]any{"n": 3}, true, true))
	r.do("sequence", "Actions.Insert sequence of nothing", func() (any, *http.Response, error) {
		return wrap(c.Actions.Insert(&whisk.Action{
			Name: "bad",
			Exec: &whisk.Exec{Kind: "sequence", Components: []string{"/_/nothing"}},
		}, false))
	})

	r.do("", "Actions.Invoke logs", invoke("logs", nil, true, false))
	r.do("", "Activations.Get logs", record)
	r.do("", "Activations.Logs", func() (any, *http.Response, error) { return wrap(c.Activations.Logs(id)) })
	r.do("", "Activations.Result", func() (any, *http.Response, error) { return wrap(c.Activations.Result(id)) })
	r.do("", "Activations.List", func() (any, *http.Response, error) {
		return wrap(c.Activations.List(&whisk.ActivationListOptions{Name: "logs", Limit: 1}))
	})
	r.do("", "Activations.List docs", func() (any, *http.Response, error) {
		return wrap(c.Activations.List(&whisk.ActivationListOptions{Name: "logs", Limit: 1, Docs: true}))
	})
	r.do("", "Activations.Count", func() (any, *http.Response, error) {
		return wrap(c.Activations.Count(&whisk.ActivationCountOptions{Name: "echo", Count: true}))
	})
	r.do("", "Activations.Get missing", func() (any, *http.Response, error) {
		return wrap(c.Activations.Get("0123456789abcdef0123456789abcdef"))
	})

	r.do("trigger", "Triggers.Insert", func() (any, *http.Response, error) {
		return wrap(c.Triggers.Insert(&whisk.Trigger{Name: "tick", Parameters: whisk.KeyValueArr{{Key: "at", Value: "noon"}}},
			false))
	})
	r.do("trigger", "Triggers.Insert again", func() (any, *http.Response, error) {
		return wrap(c.Triggers.Insert(&whisk.Trigger{Name: "tick"}, false))
	})
	r.do("trigger", "Triggers.Insert overwriting", func() (any, *http.Response, error) {
		return wrap(c.Triggers.Insert(&whisk.Trigger{Name: "tick", Annotations: whisk.KeyValueArr{{Key: "x", Value: 1}}},
			true))
	})
	r.do("trigger", "Triggers.Fire without rules",
		func() (any, *http.Response, error) { return wrap(c.Triggers.Fire("tick", nil)) })
	r.do("rule", "Rules.Insert", func() (any, *http.Response, error) {
		return wrap(c.Rules.Insert(&whisk.Rule{Name: "onTick", Trigger: "/_/tick", Action: "/_/echo"}, false))
	})
	r.do("rule", "Rules.Insert on nothing", func() (any, *http.Response, error) {
		return wrap(c.Rules.Insert(&whisk.Rule{Name: "onNothing", Trigger: "/_/nothing", Action: "/_/echo"}, false))
	})
	r.do("rule", "Rules.Get", func() (any, *http.Response, error) { return wrap(c.Rules.Get("onTick")) })
	r.do("rule", "Rules.List", func() (any, *http.Response, error) { return wrap(c.Rules.List(&whisk.RuleListOptions{})) })
	r.do("trigger", "Triggers.Get", func() (any, *http.Response, error) { return wrap(c.Triggers.Get("tick")) })
	r.do("trigger", "Triggers.List",
		func() (any, *http.Response, error) { return wrap(c.Triggers.List(&whisk.TriggerListOptions{})) })
	r.do("rule", "Triggers.Fire", func() (any, *http.Response, error) {
		v, res, err := c.Triggers.Fire("tick", map[string]any{"why": "test"})
		if v != nil {
			id = v.ActivationId
		}
		return v, res, err
	})
	r.do("rule", "Activations.Get fired", record)
	for _, state := range []string{"inactive", "active"} {
		r.do("rule", "Rules.SetState "+state,
			func() (any, *http.Response, error) { return wrap(c.Rules.SetState("onTick", state)) })
		r.do("rule", "Rules.Get "+state, func() (any, *http.Response, error) { return wrap(c.Rules.Get("onTick")) })
	}
	r.do("rule", "Rules.Delete", remove(c.Rules.Delete, "onTick"))
	r.do("rule", "Rules.Delete missing", remove(c.Rules.Delete, "onTick"))
	r.do("trigger", "Triggers.Delete", func() (any, *http.Response, error) { return wrap(c.Triggers.Delete("tick")) })

	r.do("sequence", "Actions.Delete sequence", remove(c.Actions.Delete, "seq"))
	r.do("binding", "Packages.Delete bound", remove(c.Packages.Delete, "bound"))
	r.do("", "Packages.Delete not empty", remove(c.Packages.Delete, "pkg"))
	for _, name := range []string{"echo", "pkg/double", "fail", "logs", "logs"} {
		r.do("", "Actions.Delete "+name, remove(c.Actions.Delete, name))
	}
	r.do("", "Packages.Delete", remove(c.Packages.Delete, "pkg"))
	// the last: it changes the client
	r.do("", "Namespaces.List", func() (any, *http.Response, error) { return wrap(c.Namespaces.List()) })
	golden(t, "client-go", r.steps)
	if rest := left(t, p); len(rest) > 0 {
		t.Errorf("the script leaves %v", rest)
	}
}

// wrap makes the results of a call those of a step.
func wrap[T any](v T, res *http.Response, err error) (any, *http.Response, error) { return v, res, err }
