package deploy_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/deploy"
	"github.com/disdel/disdel/executor"
	"github.com/disdel/disdel/internal/test/deploytest"
	"github.com/disdel/disdel/platform"
)

func TestMain(m *testing.M) {
	if !deploytest.Served() {
		os.Exit(m.Run())
	}
}

func cluster(t *testing.T, p *platform.Platform, key string) deploy.Cluster {
	t.Helper()
	return deploy.Cluster{Executor: deploytest.Executor(t, p.URL(), key, time.Second), Host: p.URL()}
}

func standard(t *testing.T) executor.Deployment {
	t.Helper()
	d, err := deploy.Read("manifest.yaml", deploy.StandardManifest(), deploy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// changes is what becomes of every entity of a plan.
func changes(p deploy.Plan) map[string]string {
	out := map[string]string{}
	for _, c := range p.Changes {
		out[c.Name] = c.Change
	}
	return out
}

func every(change string, more ...string) map[string]string {
	out := map[string]string{}
	for _, name := range append([]string{
		"disdel", "disdel/train", "disdel/aggregate", "disdel/evaluate", "disdel/infer",
	}, more...) {
		out[name] = change
	}
	return out
}

func ExampleRead() {
	d, err := deploy.Read("manifest.yaml", deploy.StandardManifest(), deploy.Options{Image: "registry.example/disdel:1.0"})
	if err != nil {
		fmt.Println(err)
	}
	for _, a := range d.Actions {
		fmt.Printf("%s/%s: %s of %s, %v\n", d.Package, a.Name, a.Main, a.Image, a.Memory)
	}
	// Output:
	// disdel/aggregate: aggregate of registry.example/disdel:1.0, 256 MB
	// disdel/evaluate: evaluate of registry.example/disdel:1.0, 256 MB
	// disdel/infer: infer of registry.example/disdel:1.0, 256 MB
	// disdel/train: train of registry.example/disdel:1.0, 512 MB
}

// A preview does nothing; up does what it says, and once: the second one touches nothing.
func TestUpIsWhatPreviewSays(t *testing.T) {
	p := deploytest.Platform(t, nil)
	c, wanted := cluster(t, p, p.AuthKey()), standard(t)
	step := func(what string, do func(context.Context, executor.Deployment) (deploy.Plan, error),
		wanted executor.Deployment, want map[string]string,
	) deploy.Plan {
		t.Helper()
		got, err := do(t.Context(), wanted)
		if diff := cmp.Diff(want, changes(got)); diff != "" || err != nil {
			t.Fatalf("%s: %v (-want +got)\n%s", what, err, diff)
		}
		return got
	}
	for _, what := range []string{"preview", "preview again"} {
		step(what, c.Preview, wanted, every(deploy.Create))
	}
	step("up", c.Up, wanted, every(deploy.Create))
	versions := func() (out []string) {
		d, err := c.Executor.Deployment(t.Context(), "disdel")
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range d.Actions {
			out = append(out, a.Name+" "+a.Version+" "+a.Updated.String())
		}
		slices.Sort(out)
		return out
	}
	before := versions()
	if again := step("second up", c.Up, wanted, every(deploy.Keep)); again.Changed() != 0 {
		t.Errorf("%d changes", again.Changed())
	}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("the second up touched something:\n%s", diff)
	}

	less := wanted
	less.Actions = slices.Clone(wanted.Actions)
	less.Actions[3].Memory = 256 * disdel.MB // train
	want := every(deploy.Keep)
	want["disdel/train"] = deploy.Update
	plan := step("preview of less", c.Preview, less, want)
	fields := []deploy.Field{{Name: "memory", From: "512 MB", To: "256 MB"}}
	at := slices.IndexFunc(plan.Changes, func(c deploy.Change) bool { return c.Name == "disdel/train" })
	if diff := cmp.Diff(fields, plan.Changes[at].Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	step("up of less", c.Up, less, want)
	step("up of less again", c.Up, less, every(deploy.Keep))
	step("down", c.Down, wanted, every(deploy.Remove))
	step("down again", c.Down, wanted, map[string]string{})
}

// What others have put into the package stays there, and is told.
func TestActionsOfOthersAreLeftAlone(t *testing.T) {
	p := deploytest.Platform(t, nil)
	c, wanted := cluster(t, p, p.AuthKey()), standard(t)
	if _, err := c.Up(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	own := executor.DeployedAction{Name: "own", Kind: disdel.RuntimeKind, Code: "x", Main: "infer"}
	if err := c.Executor.PutAction(t.Context(), "disdel", own); err != nil {
		t.Fatal(err)
	}
	want := every(deploy.Keep)
	want["disdel/own"] = deploy.Unmanaged
	plan, err := c.Up(t.Context(), wanted)
	if diff := cmp.Diff(want, changes(plan)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	want = every(deploy.Remove)
	want["disdel"], want["disdel/own"] = deploy.Keep, deploy.Unmanaged
	plan, err = c.Down(t.Context(), wanted)
	if diff := cmp.Diff(want, changes(plan)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if d, err := c.Executor.Deployment(t.Context(), "disdel"); err != nil || len(d.Actions) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// What cannot be deployed is refused before anything is changed, with the admin's key.
func TestRefusalsComeBeforeChanges(t *testing.T) {
	p := deploytest.Platform(t, func(c *platform.Config) { c.Limits.Memory.Max = 256 * disdel.MB })
	c := cluster(t, p, p.AuthKey())
	_, err := c.Up(t.Context(), standard(t))
	e := disdel.AsError(err)
	if e.Kind != disdel.OverLimit || !strings.Contains(e.Hint, `whisk.limits.actions.memory.max: "512m"`) {
		t.Errorf("%v: %s", err, e.Hint)
	}
	if _, err := c.Executor.Deployment(t.Context(), "disdel"); disdel.KindOf(err) != disdel.NotFound {
		t.Errorf("something was deployed: %v", err)
	}
	_, err = cluster(t, p, "00000000-0000-4000-8000-000000000000:wrong").Up(t.Context(), standard(t))
	if disdel.KindOf(err) != disdel.OverLimit && disdel.KindOf(err) != disdel.Denied {
		t.Errorf("%v", err)
	}
	unknown := deploytest.Platform(t, func(c *platform.Config) {
		c.Kinds = map[string]platform.Kind{"other:1": c.Kinds[disdel.RuntimeKind]}
	})
	_, err = cluster(t, unknown, unknown.AuthKey()).Up(t.Context(), standard(t))
	if e := disdel.AsError(err); e.Kind != disdel.Invalid || !strings.Contains(e.Hint, "--image") {
		t.Errorf("%v: %s", err, e.Hint)
	}
}

func TestManifestsThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"packages: {}":                                "0 packages",
		"packages: {a: {}, b: {}}":                    "2 packages",
		"packages: {a: {sequences: {}}}":              "sequences",
		"packages: {a: {actions: {b: {code: x}}}}":    "no runtime",
		"packages: {a: {actions: {b: {runtime: x}}}}": "no code",
		"packages: {a: {actions: {b: {runtime: x, code: y, limits: {timeout: -1}}}}}": "below 0",
		"]": "load error",
	} {
		_, err := deploy.Read("m.yaml", []byte(text), deploy.Options{})
		if disdel.KindOf(err) != disdel.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The manifest documents every parameter that its actions take, and no other.
func TestTheManifestDocumentsEveryParameter(t *testing.T) {
	requests := map[string]any{
		"train": disdel.TrainRequest{}, "aggregate": disdel.AggregateRequest{}, "evaluate": disdel.EvaluateRequest{},
		"infer": disdel.InferRequest{},
	}
	for _, a := range standard(t).Actions {
		var got []string
		for _, p := range a.Annotations["parameters"].([]any) {
			fields := p.(map[string]any)
			got = append(got, fields["name"].(string))
			if fields["description"] == nil || fields["type"] == nil {
				t.Errorf("%s: %v", a.Name, fields)
			}
		}
		want := jsonFields(reflect.TypeOf(requests[a.Name]))
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-taken +documented)\n%s", a.Name, diff)
		}
	}
}

func jsonFields(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			out = append(out, jsonFields(f.Type)...)
			continue
		}
		out = append(out, name)
	}
	return out
}

func TestAPlanIsATable(t *testing.T) {
	p := deploy.Plan{Host: "http://h", Package: "disdel", Changes: []deploy.Change{
		{What: "package", Name: "disdel", Change: deploy.Keep},
		{What: "action", Name: "disdel/train", Change: deploy.Update, Fields: []deploy.Field{{Name: "main", To: "train"}}},
	}}
	var out strings.Builder
	p.Print(&out)
	want := "keep    package  disdel\nupdate  action   disdel/train\ndisdel/train: main: nothing -> train\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := p.Summary(true); got != "package disdel at http://h: 0 created, 1 updated, 0 removed, 1 unchanged" {
		t.Error(got)
	}
}
