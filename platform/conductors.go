package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// composition is a conductor at work: an action that says after each step which action is next, and with what
// (OpenWhisk's docs/conductors.md).
type composition struct {
	p     *Platform
	run   *running
	out   account
	state map[string]json.RawMessage // that the conductor gets back with every result
	count *compositionCount
}

// compositionCount counts what ran in a composition and in all that are nested in it: they share the limits. A sequence
// counts as one component, and has its own limit inside (OpenWhisk's PrimitiveActions.scala, CompositionAccounting).
type compositionCount struct {
	components int // that are no conductors
	turns      int // of all conductors
}

// conducted tells whether an action is a conductor, whose turns themselves are plain activations.
func (run *running) conducted() bool {
	return !run.turn && annotated(run.action.Annotations, "conductor")
}

func annotated(list []keyValue, key string) bool {
	for _, a := range list {
		if a.Key == key {
			return truthy(a.Value)
		}
	}
	return false
}

// runConductor runs a composition.
func (p *Platform) runConductor(run *running) {
	started := time.Now()
	if run.count == nil { // the outermost one
		run.count = &compositionCount{}
	}
	c := &composition{p: p, run: run, count: run.count, out: account{logs: []string{}}}
	for next := c.turn(run.params); next != nil; next = c.turn(next) {
	}
	rec := c.out.record(run, started)
	rec.Annotations = append(rec.Annotations, kv("conductor", true))
	p.file(run, rec)
}

// turn asks the conductor what comes after a result, and runs that. It returns what the conductor gets next, nil at the
// end.
func (c *composition) turn(input json.RawMessage) json.RawMessage {
	switch {
	case c.p.work.Err() != nil: // the platform ends
		c.out.fail(textStartFailed)
		return nil
	case c.count.turns > 2*c.p.cfg.Limits.SequenceLength:
		c.out.fail(textCompositionLong)
		return nil
	}
	c.count.turns++
	found := &resolved{action: c.run.action, binding: c.run.binding}
	step := c.p.newRun(c.run.user, found, merged(input, c.state), c.run.id)
	step.turn = true
	if !c.carryOut(step) || !c.out.last.Success {
		return nil
	}
	var said struct{ Action, Params, State json.RawMessage }
	if json.Unmarshal(c.out.last.Result, &said) != nil {
		return nil // an array: it ends with that
	}
	c.state = boxed(said.State, "state")
	if len(said.Action) == 0 {
		if len(said.Params) > 0 {
			c.out.last.Result = merged(nil, boxed(said.Params, "value"))
		}
		c.out.last.Size = 0
		return nil
	}
	return c.component(said.Action, merged(nil, boxed(said.Params, "value")))
}

// component runs the action that the conductor has named. That it cannot be run is the conductor's to handle.
func (c *composition) component(name, params json.RawMessage) json.RawMessage {
	var text string
	path, err := pathName{}, json.Unmarshal(name, &text)
	if err == nil {
		path, err = parsePath(qualified(text), c.run.user.Name)
	}
	switch {
	case err != nil:
		return errorResult(textComponentInvalid(name))
	case c.count.components >= c.p.cfg.Limits.SequenceLength:
		return errorResult(textCompositionLong)
	}
	step, err := c.p.startComponent(c.run, qualified(text), params)
	var pr problem
	if errors.As(err, &pr) && pr.status == 403 {
		return errorResult(textComponentDenied(path.key()))
	}
	if err != nil {
		return errorResult(textComponentMissing(path.key()))
	}
	if !c.carryOut(step) {
		return nil
	}
	return c.out.last.Result
}

// qualified is the full name of the action that a conductor names: without a slash before it, one or two parts are of
// the user's own namespace (FullyQualifiedEntityName.resolveName).
func qualified(name string) string {
	if strings.HasPrefix(name, "/") || strings.Count(name, "/") > 1 {
		return name
	}
	return "/_/" + name
}

// carryOut runs a step and counts it; false where the platform could not take it on.
func (c *composition) carryOut(step *running) bool {
	if step.turn {
		if err := c.p.accepted.add(step.lost()); err != nil {
			c.out.fail(unwritable(err).Error())
			return false
		}
		c.p.execute(step)
	} else {
		if !step.conducted() {
			c.count.components++
		}
		c.p.carryOut(step, c.p.cfg.Limits.SequenceLength)
	}
	c.out.logs = append(c.out.logs, step.id)
	c.out.last = step.record.Response
	if step.record.Duration != nil {
		c.out.duration += *step.record.Duration
	}
	c.out.memory = max(c.out.memory, step.record.memory)
	return true
}

// boxed is a value as an object: itself, or the value under a name. nil where there is none.
func boxed(v json.RawMessage, name string) map[string]json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	var out map[string]json.RawMessage
	if json.Unmarshal(v, &out) != nil {
		out = map[string]json.RawMessage{name: v}
	}
	return out
}

// merged lays fields over those of an object.
func merged(object json.RawMessage, fields map[string]json.RawMessage) json.RawMessage {
	all := map[string]json.RawMessage{}
	if len(object) > 0 && json.Unmarshal(object, &all) != nil {
		return object // an array takes no fields
	}
	maps.Copy(all, fields)
	out, _ := json.Marshal(all) // of what was JSON
	return out
}

func errorResult(text string) json.RawMessage {
	out, _ := json.Marshal(map[string]string{"error": text})
	return out
}

const textCompositionLong = "Too many actions in the composition."

func textComponentInvalid(name json.RawMessage) string {
	return fmt.Sprintf("Failed to parse action name from json value %s during composition.", name)
}

func textComponentMissing(path string) string {
	return fmt.Sprintf("Failed to resolve action with name '%s' during composition.", path)
}

func textComponentDenied(path string) string {
	return fmt.Sprintf("Failed entitlement check for action with name '%s' during composition.", path)
}
