package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/executor"
)

// Cluster is the OpenWhisk that is deployed to.
type Cluster struct {
	Executor *executor.Executor
	Host     string // as it is told
}

// Preview says what Up would do, and does nothing. It returns OverLimit for an action whose limits the platform does
// not allow, and what the platform answers: Denied, Unavailable.
func (c Cluster) Preview(ctx context.Context, wanted executor.Deployment) (Plan, error) {
	p, _, err := c.look(ctx, wanted)
	return p, err
}

// look is the plan, and what is there, nil for nothing.
func (c Cluster) look(ctx context.Context, wanted executor.Deployment) (Plan, *executor.Deployment, error) {
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

// allowed returns OverLimit for the first action that asks for more than the platform allows, with the admin's key.
func allowed(wanted executor.Deployment, limits disdel.PlatformLimits) error {
	for _, a := range wanted.Actions {
		name := wanted.Package + "/" + a.Name
		if a.Memory > limits.MaxMemory {
			return &disdel.Error{
				Kind: disdel.OverLimit, Op: "deploy " + name,
				Msg: fmt.Sprintf("it asks for %v, and the platform allows %v", a.Memory, limits.MaxMemory),
				Hint: fmt.Sprintf("ask the platform's admin for whisk.limits.actions.memory.max: \"%dm\" (Helm), or deploy "+
					"a manifest of your own with less: --manifest FILE", a.Memory.MB()),
			}
		}
		if most := time.Duration(limits.MaxTimeout); a.Timeout > most {
			return &disdel.Error{
				Kind: disdel.OverLimit, Op: "deploy " + name,
				Msg: fmt.Sprintf("it asks for %v, and the platform allows %v", a.Timeout, most),
				Hint: fmt.Sprintf("ask the platform's admin for whisk.limits.actions.time.max: \"%ds\" (Helm), or deploy "+
					"a manifest of your own with less: --manifest FILE", int(a.Timeout.Seconds())),
			}
		}
	}
	return nil
}

// Up makes the platform as wanted, and returns what was done. Of what is as wanted already nothing is touched. After an
// error the plan has what was done before it.
func (c Cluster) Up(ctx context.Context, wanted executor.Deployment) (Plan, error) {
	p, _, err := c.look(ctx, wanted)
	if err != nil {
		return p, err
	}
	for i, change := range p.Changes {
		if err := c.carryOut(ctx, wanted, change); err != nil {
			p.Changes = p.Changes[:i]
			return p, err
		}
	}
	return p, nil
}

func (c Cluster) carryOut(ctx context.Context, wanted executor.Deployment, change Change) error {
	switch {
	case change.Change != Create && change.Change != Update:
		return nil
	case change.What == "package":
		return c.Executor.PutPackage(ctx, wanted)
	default:
		return c.Executor.PutAction(ctx, wanted.Package, change.action)
	}
}

// Down removes the actions that the manifest names, and the package where nothing else is in it. What is not there is
// no error.
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
		if !slices.ContainsFunc(wanted.Actions, func(w executor.Deployed) bool { return w.Name == a.Name }) {
			others = true
			p.Changes = append(p.Changes, Change{What: "action", Name: name, Change: Other, Version: a.Version})
			continue
		}
		err := c.Executor.RemoveAction(ctx, wanted.Package, a.Name)
		if err != nil && disdel.KindOf(err) != disdel.NotFound { // somebody else was faster
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
