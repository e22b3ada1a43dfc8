package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/disdel/disdel/executor"
)

// The ways in which what is wanted differs from what is there.
const (
	Create = "create"
	Update = "update"
	Keep   = "keep"   // nothing differs
	Remove = "remove" // of down
	Other  = "other"  // the manifest does not name it, and it is left alone
)

// Change is one entity of a package: what becomes of it, and why.
type Change struct {
	What    string  `json:"what"` // package or action
	Name    string  `json:"name"`
	Change  string  `json:"change"`
	Version string  `json:"version,omitempty"` // that is there
	Fields  []Field `json:"fields,omitempty"`  // that differ
	action  executor.Deployed
}

// Field is what differs in one of them.
type Field struct {
	Name string `json:"name"`
	From string `json:"from"` // "": nothing was said
	To   string `json:"to"`
}

// Plan is what is to be done to a package so that it is as wanted.
type Plan struct {
	Host    string   `json:"host"`
	Package string   `json:"package"`
	Changes []Change `json:"changes"`
	down    bool     // it removes what the manifest names
}

// Changed counts what is not as wanted.
func (p *Plan) Changed() (n int) {
	for _, c := range p.Changes {
		if c.Change != Keep && c.Change != Other {
			n++
		}
	}
	return n
}

// compare says what is to be done to what is there, nil for nothing, so that it becomes what is wanted.
func compare(wanted executor.Deployment, there *executor.Deployment) []Change {
	pkg := Change{What: "package", Name: wanted.Package, Change: Create}
	found := map[string]executor.Deployed{}
	if there != nil {
		pkg.Fields, pkg.Version = packageFields(wanted, *there), there.Version
		pkg.Change = change(pkg.Fields)
		for _, a := range there.Actions {
			found[a.Name] = a
		}
	}
	out := []Change{pkg}
	for _, want := range wanted.Actions {
		c := Change{What: "action", Name: wanted.Package + "/" + want.Name, Change: Create, action: want}
		if is, ok := found[want.Name]; ok {
			c.Fields, c.Version = fields(want, is), is.Version
			c.Change = change(c.Fields)
		}
		delete(found, want.Name)
		out = append(out, c)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, Change{
			What: "action", Name: wanted.Package + "/" + name, Change: Other, Version: found[name].Version,
		})
	}
	return out
}

func change(fields []Field) string {
	if len(fields) > 0 {
		return Update
	}
	return Keep
}

// packageFields is what differs between a package as it is wanted and as it is, without its actions. A version that the
// manifest does not say is the platform's.
func packageFields(want, is executor.Deployment) (out []Field) {
	if want.Version != "" && want.Version != is.Version {
		out = append(out, Field{"version", is.Version, want.Version})
	}
	return append(out, annotationFields(want.Annotations, is.Annotations)...)
}

// fields is what differs between an action as it is wanted and as it is. Limits that are not said are the platform's,
// and annotations that are not said are others'.
func fields(want, is executor.Deployed) (out []Field) {
	differ := func(name string, from, to any) {
		if from != to {
			out = append(out, Field{name, fmt.Sprint(from), fmt.Sprint(to)})
		}
	}
	differ("kind", is.Kind, want.Kind)
	differ("image", is.Image, want.Image)
	differ("main", is.Main, want.Main)
	if want.Code != "" && is.Code != want.Code {
		out = append(out, Field{"code", fmt.Sprintf("%d bytes", len(is.Code)), fmt.Sprintf("%d bytes", len(want.Code))})
	}
	if want.Memory > 0 {
		differ("memory", is.Memory, want.Memory)
	}
	if want.Timeout > 0 {
		differ("timeout", is.Timeout, want.Timeout)
	}
	if want.Logs > 0 {
		differ("logs", is.Logs, want.Logs)
	}
	return append(out, annotationFields(want.Annotations, is.Annotations)...)
}

// annotationFields is which annotations differ. Their values are told by their size: documentation is long.
func annotationFields(want, is map[string]any) (out []Field) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		to, from := plain(want[name]), plain(is[name])
		if reflect.DeepEqual(to, from) {
			continue
		}
		f := Field{Name: "annotation " + name, To: short(to)}
		if _, there := is[name]; there {
			f.From = short(from)
		}
		out = append(out, f)
	}
	return out
}

// plain is a value as JSON has it, so that one of YAML and one of the platform's can be compared.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return string(data)
	}
	return out
}

// mostShown is how much of a value is told.
const mostShown = 40

func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil || len(text) > mostShown {
		return fmt.Sprintf("%d bytes", len(text))
	}
	return string(text)
}
