package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
)

// Cluster is the OpenWhisk to deploy to.
type Cluster struct {
	Executor *executor.Executor
	Host     string // as shown to users
}

// Preview returns what Up would do, without doing it. It returns OverLimit for an action whose limits the platform does
// not allow, Denied, Unavailable.
func (c Cluster) Preview(ctx context.Context, wanted executor.Deployment) (Plan, error) {
	p, _, err := c.plan(ctx, wanted)
	return p, err
}

// plan returns the plan and the present deployment, nil if there is none.
func (c Cluster) plan(ctx context.Context, wanted executor.Deployment) (Plan, *executor.Deployment, error) {
	p := Plan{Host: c.Host, Package: wanted.Package, Changes: []Change{}}
	limits, err := c.Executor.Limits(ctx)
	if err == nil {
		err = allowed(wanted, limits)
	}
	if err != nil {
		return p, nil, err
	}
	there, err := c.Executor.Deployment(ctx, wanted.Package)
	switch {
	case disdel.KindOf(err) == disdel.NotFound:
		p.Changes = compare(wanted, nil)
		return p, nil, nil
	case err != nil:
		return p, nil, err
	}
	p.Changes = compare(wanted, &there)
	return p, &there, nil
}

// allowed returns OverLimit for the first action that asks for more than the platform allows. The hint names the
// admin's setting.
func allowed(wanted executor.Deployment, limits disdel.PlatformLimits) error {
	for _, a := range wanted.Actions {
		name := wanted.Package + "/" + a.Name
		if a.Memory > limits.MaxMemory {
			return &disdel.Error{
				Kind: disdel.OverLimit, Op: "deploy " + name,
				Msg: fmt.Sprintf("it asks for %v, but the platform allows %v", a.Memory, limits.MaxMemory),
				Hint: fmt.Sprintf("ask the platform's admin for whisk.limits.actions.memory.max: \"%dm\" (Helm), or deploy "+
					"a manifest of your own with less: --manifest FILE", a.Memory.MB()),
			}
		}
		if maximum := time.Duration(limits.MaxTimeout); a.Timeout > maximum {
			return &disdel.Error{
				Kind: disdel.OverLimit, Op: "deploy " + name,
				Msg: fmt.Sprintf("it asks for %v, but the platform allows %v", a.Timeout, maximum),
				Hint: fmt.Sprintf("ask the platform's admin for whisk.limits.actions.time.max: \"%ds\" (Helm), or deploy "+
					"a manifest of your own with less: --manifest FILE", int(a.Timeout.Seconds())),
			}
		}
	}
	return nil
}

// Up applies the manifest and returns what it did. After an error the plan has only the changes before it.
func (c Cluster) Up(ctx context.Context, wanted executor.Deployment) (Plan, error) {
	p, _, err := c.plan(ctx, wanted)
	if err != nil {
		return p, err
	}
	for i, change := range p.Changes {
		if err := c.apply(ctx, wanted, change); err != nil {
			p.Changes = p.Changes[:i]
			return p, err
		}
	}
	return p, nil
}

func (c Cluster) apply(ctx context.Context, wanted executor.Deployment, change Change) error {
	switch {
	case change.Change != Create && change.Change != Update:
		return nil
	case change.What == "package":
		return c.Executor.PutPackage(ctx, wanted)
	default:
		return c.Executor.PutAction(ctx, wanted.Package, change.action)
	}
}

// Down removes the actions that the manifest names, and the package if nothing else is in it. Missing actions are not
// an error.
func (c Cluster) Down(ctx context.Context, wanted executor.Deployment) (Plan, error) {
	p := Plan{Host: c.Host, Package: wanted.Package, Changes: []Change{}, down: true}
	there, err := c.Executor.Deployment(ctx, wanted.Package)
	if disdel.KindOf(err) == disdel.NotFound {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	others := false
	for _, a := range there.Actions {
		name := wanted.Package + "/" + a.Name
		if !slices.ContainsFunc(wanted.Actions, func(w executor.DeployedAction) bool { return w.Name == a.Name }) {
			others = true
			p.Changes = append(p.Changes, Change{What: "action", Name: name, Change: Unmanaged, Version: a.Version})
			continue
		}
		err := c.Executor.RemoveAction(ctx, wanted.Package, a.Name)
		if err != nil && disdel.KindOf(err) != disdel.NotFound { // another process may have removed it
			return p, err
		}
		p.Changes = append(p.Changes, Change{What: "action", Name: name, Change: Remove, Version: a.Version})
	}
	if others {
		p.Changes = append(p.Changes, Change{What: "package", Name: wanted.Package, Change: Keep})
		return p, nil
	}
	err = c.Executor.RemovePackage(ctx, wanted.Package)
	if err == nil || disdel.KindOf(err) == disdel.NotFound {
		p.Changes = append(p.Changes, Change{What: "package", Name: wanted.Package, Change: Remove})
		return p, nil
	}
	return p, err
}

// The kinds of changes.
const (
	Create    = "create"
	Update    = "update"
	Keep      = "keep"   // nothing to do
	Remove    = "remove" // by Down
	Unmanaged = "other"  // not in the manifest: left alone
)

// Change is one entity of a package and what happens to it.
type Change struct {
	What    string  `json:"what"` // package or action
	Name    string  `json:"name"`
	Change  string  `json:"change"`
	Version string  `json:"version,omitempty"` // on the platform
	Fields  []Field `json:"fields,omitempty"`  // that change
	action  executor.DeployedAction
}

// Field is a changed field.
type Field struct {
	Name string `json:"name"`
	From string `json:"from"` // "": not set
	To   string `json:"to"`
}

// Plan has the changes that make a package equal to the manifest.
type Plan struct {
	Host    string   `json:"host"`
	Package string   `json:"package"`
	Changes []Change `json:"changes"`
	down    bool     // it is a plan of Down
}

// Changed counts the entities that change.
func (p *Plan) Changed() (n int) {
	for _, c := range p.Changes {
		if c.Change != Keep && c.Change != Unmanaged {
			n++
		}
	}
	return n
}

// compare returns the changes from the present deployment, nil if there is none, to the wanted one.
func compare(wanted executor.Deployment, there *executor.Deployment) []Change {
	pkg := Change{What: "package", Name: wanted.Package, Change: Create}
	found := map[string]executor.DeployedAction{}
	if there != nil {
		pkg.Fields, pkg.Version = packageFields(wanted, *there), there.Version
		pkg.Change = changeOf(pkg.Fields)
		for _, a := range there.Actions {
			found[a.Name] = a
		}
	}
	out := []Change{pkg}
	for _, want := range wanted.Actions {
		c := Change{What: "action", Name: wanted.Package + "/" + want.Name, Change: Create, action: want}
		if is, ok := found[want.Name]; ok {
			c.Fields, c.Version = fields(want, is), is.Version
			c.Change = changeOf(c.Fields)
		}
		delete(found, want.Name)
		out = append(out, c)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, Change{
			What: "action", Name: wanted.Package + "/" + name, Change: Unmanaged, Version: found[name].Version,
		})
	}
	return out
}

func changeOf(fields []Field) string {
	if len(fields) > 0 {
		return Update
	}
	return Keep
}

// packageFields are the changed fields of a package without its actions. The platform counts the version if the
// manifest has none.
func packageFields(want, is executor.Deployment) (out []Field) {
	if want.Version != "" && want.Version != is.Version {
		out = append(out, Field{"version", is.Version, want.Version})
	}
	return append(out, annotationFields(want.Annotations, is.Annotations)...)
}

// fields are the changed fields of an action. Limits and annotations that the manifest does not set stay.
func fields(want, is executor.DeployedAction) (out []Field) {
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

// annotationFields are the changed annotations. Long values are shown by their size.
func annotationFields(want, is map[string]any) (out []Field) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		to, from := asJSON(want[name]), asJSON(is[name])
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

// asJSON converts a value to plain JSON types, so that values from YAML and from the platform can be compared.
func asJSON(v any) any {
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

// maxShown is the longest value that is shown, in bytes of JSON.
const maxShown = 40

func short(v any) string {
	text, err := json.Marshal(v)
	if err != nil || len(text) > maxShown {
		return fmt.Sprintf("%d bytes", len(text))
	}
	return string(text)
}

// Print writes a plan as a table of entities, followed by all changed fields.
func (p *Plan) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range p.Changes {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Change, c.What, c.Name)
	}
	t.Flush() //nolint:errcheck // the caller checks w
	for _, c := range p.Changes {
		for _, f := range c.Fields {
			from := f.From
			if from == "" {
				from = "nothing"
			}
			fmt.Fprintf(w, "%s: %s: %s -> %s\n", c.Name, f.Name, from, f.To)
		}
	}
}

// Summary is a plan in one sentence, before or after it was carried out.
func (p *Plan) Summary(done bool) string {
	count := map[string]int{}
	for _, c := range p.Changes {
		count[c.Change]++
	}
	if p.down && len(p.Changes) == 0 {
		return fmt.Sprintf("package %s does not exist at %s: there is nothing to remove", p.Package, p.Host)
	}
	if p.down && p.Changed() == 0 {
		return fmt.Sprintf("package %s at %s has no action of the manifest, and keeps %s of others",
			p.Package, p.Host, countOfActions(count[Unmanaged]))
	}
	if p.Changed() == 0 {
		return fmt.Sprintf("package %s at %s is up to date with the manifest", p.Package, p.Host)
	}
	form := "package %s at %s: %d to create, %d to update, %d to remove, %d unchanged"
	if done {
		form = "package %s at %s: %d created, %d updated, %d removed, %d unchanged"
	}
	return fmt.Sprintf(form, p.Package, p.Host, count[Create], count[Update], count[Remove], count[Keep]+count[Unmanaged])
}

// countOfActions is a number of actions in words.
func countOfActions(actions int) string {
	if actions == 1 {
		return "1 action"
	}
	return fmt.Sprintf("%d actions", actions)
}
