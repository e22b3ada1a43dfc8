package platform

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// checkSequence replaces a sequence's components by their full names. It refuses components that are missing, too many,
// or the sequence itself.
func (p *Platform) checkSequence(t tx, u *user, a *action) error {
	if len(a.Exec.Components) == 0 {
		return errSequenceEmpty
	}
	names := make([]string, 0, len(a.Exec.Components))
	for _, text := range a.Exec.Components {
		path, err := parsePath(text, u.Name)
		if err != nil {
			return err
		}
		names = append(names, "/"+path.key())
	}
	a.Exec.Components = names
	a.Parameters = []keyValue{kv("_actions", names)} // where clients of old releases read them
	n, err := p.countActions(t, u, a, a.path(), 0)
	if err != nil {
		return err
	}
	if n > p.cfg.Limits.SequenceLength {
		return errSequenceLong
	}
	return nil
}

// countActions counts the actions that a sequence runs, and stops when there are too many. depth ends loops: a changed
// binding can make checked sequences refer to each other.
func (p *Platform) countActions(t tx, u *user, a *action, self string, depth int) (int, error) {
	if depth > p.cfg.Limits.SequenceLength {
		return 0, errSequenceCycle
	}
	n := 0
	for _, text := range a.Exec.Components {
		path, err := parsePath(text, u.Name)
		if err != nil {
			return 0, err
		}
		if path.key() == self {
			return 0, errSequenceCycle
		}
		part, err := p.component(t, u, path)
		if err != nil {
			return 0, err
		}
		add := 1
		if part.path() == self { // through a binding
			return 0, errSequenceCycle
		}
		if part.Exec.Kind == sequenceKind {
			if add, err = p.countActions(t, u, part.action, self, depth+1); err != nil {
				return 0, err
			}
		}
		if n += add; n > p.cfg.Limits.SequenceLength {
			return n, nil
		}
	}
	return n, nil
}

func (p *Platform) component(t tx, u *user, path pathName) (*resolved, error) {
	found, err := p.resolve(t, u, path)
	if isNotFound(err) {
		return nil, errSequenceComponent
	}
	return found, err
}

// compositeResult collects what the record of a sequence or composition has.
type compositeResult struct {
	last     response
	logs     []string // ids of the components' activations
	duration int64
	memory   int // the largest component's
}

func (c *compositeResult) fail(text string) {
	result, _ := json.Marshal(map[string]string{"error": text})
	c.last = response{Result: result, Status: statusApplication, Size: len(result)}
}

// runSequence runs the components in order, each with the result of the one before, until one fails. remaining is how
// many more actions may run, and so is the result: components may have changed since the check.
func (p *Platform) runSequence(run *running, remaining int) int {
	started := time.Now()
	c := compositeResult{last: response{Result: run.params, Status: statusSuccess, Success: true}, logs: []string{}}
	for _, text := range run.action.Exec.Components {
		if remaining <= 0 {
			c.fail(errSequenceLong.text)
			break
		}
		if p.work.Err() != nil { // the platform ends
			c.fail(textStartFailed)
			break
		}
		part, err := p.startComponent(run, text, c.last.Result)
		if err != nil {
			c.fail(err.Error())
			break
		}
		c.logs = append(c.logs, part.id)
		remaining = p.runAction(part, remaining)
		c.last = part.record.Response
		if part.record.Duration != nil {
			c.duration += *part.record.Duration
		}
		c.memory = max(c.memory, part.record.memory)
		if !c.last.Success {
			break
		}
	}
	p.finishRun(run, c.record(run, started))
	return remaining
}

func (p *Platform) startComponent(run *running, text string, input json.RawMessage) (*running, error) {
	if run.depth >= p.cfg.Limits.SequenceLength {
		return nil, errSequenceCycle
	}
	var found *resolved
	path, err := parsePath(text, run.user.Name)
	if err != nil {
		return nil, err
	}
	err = p.store.view(func(t tx) (err error) {
		found, err = p.component(t, run.user, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	params, err := found.arguments(input)
	if err != nil {
		return nil, err
	}
	part := p.newRun(run.user, found, params, run.id)
	part.depth, part.count = run.depth, run.count
	if !run.isConductor() {
		part.depth++
	}
	if err := p.accepted.add(part.lostRecord()); err != nil {
		return nil, diskError(err)
	}
	return part, nil
}

func (c *compositeResult) record(run *running, started time.Time) *activation {
	a := run.action
	end := time.Now()
	rec := &activation{
		Namespace: run.user.Name, Name: a.Name, Version: a.Version, Subject: run.user.Name, ActivationID: run.id,
		Cause: run.cause,
		Start: started.UnixMilli(), End: end.UnixMilli(), Duration: &c.duration, Response: c.last, Logs: slices.Clone(c.logs),
		memory: c.memory,
	}
	size := a.Limits
	size.Memory = max(size.Memory, c.memory)
	rec.Annotations = append(run.annotations(), kv("topmost", run.cause == ""), kv("limits", size),
		kv("waitTime", max(0, started.Sub(run.received).Milliseconds())))
	return rec
}

// annotations are the annotations that the record of every action has.
func (run *running) annotations() []keyValue {
	kind := run.action.Exec.Kind
	if run.isConductor() {
		kind = sequenceKind
	}
	out := []keyValue{kv("path", run.action.path()), kv("kind", kind)}
	if run.binding != "" {
		out = append(out, kv("binding", run.binding))
	}
	if run.cause != "" {
		out = append(out, kv("causedBy", sequenceKind))
	}
	return out
}

// composition is a running conductor: an action that decides after each step which action runs next, and with which
// parameters (OpenWhisk's docs/conductors.md).
type composition struct {
	p     *Platform
	run   *running
	out   compositeResult
	state map[string]json.RawMessage // the conductor gets it back with every result
	count *compositionCount
}

// compositionCount counts the actions of a composition and of all nested ones, which share the limits. A sequence
// counts as one component and has its own limit (OpenWhisk's PrimitiveActions.scala, CompositionAccounting).
type compositionCount struct {
	components    int // without conductors
	conductorRuns int // runs of conductors
}

// isConductor tells whether the run starts a composition. A conductor's own runs within it are plain activations.
func (run *running) isConductor() bool {
	return !run.conductorRun && isAnnotationSet(run.action.Annotations, "conductor")
}

func isAnnotationSet(list []keyValue, key string) bool {
	for _, a := range list {
		if a.Key == key {
			return isTruthy(a.Value)
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
	c := &composition{p: p, run: run, count: run.count, out: compositeResult{logs: []string{}}}
	for next := c.nextStep(run.params); next != nil; next = c.nextStep(next) {
	}
	rec := c.out.record(run, started)
	rec.Annotations = append(rec.Annotations, kv("conductor", true))
	p.finishRun(run, rec)
}

// nextStep runs the conductor with the last result, and then the action that it names. It returns the conductor's next
// input, or nil at the end.
func (c *composition) nextStep(input json.RawMessage) json.RawMessage {
	switch {
	case c.p.work.Err() != nil: // the platform ends
		c.out.fail(textStartFailed)
		return nil
	case c.count.conductorRuns > 2*c.p.cfg.Limits.SequenceLength:
		c.out.fail(textCompositionLong)
		return nil
	}
	c.count.conductorRuns++
	found := &resolved{action: c.run.action, binding: c.run.binding}
	step := c.p.newRun(c.run.user, found, mergeFields(input, c.state), c.run.id)
	step.conductorRun = true
	if !c.runStep(step) || !c.out.last.Success {
		return nil
	}
	var reply struct{ Action, Params, State json.RawMessage }
	if json.Unmarshal(c.out.last.Result, &reply) != nil {
		return nil // an array ends the composition
	}
	c.state = asObject(reply.State, "state")
	if len(reply.Action) == 0 {
		if len(reply.Params) > 0 {
			c.out.last.Result = mergeFields(nil, asObject(reply.Params, "value"))
		}
		c.out.last.Size = 0
		return nil
	}
	return c.component(reply.Action, mergeFields(nil, asObject(reply.Params, "value")))
}

// component runs the action that the conductor named. If that fails, the conductor gets the error.
func (c *composition) component(name, params json.RawMessage) json.RawMessage {
	var text string
	path, err := pathName{}, json.Unmarshal(name, &text)
	if err == nil {
		path, err = parsePath(fullName(text), c.run.user.Name)
	}
	switch {
	case err != nil:
		return errorResult(textComponentInvalid(name))
	case c.count.components >= c.p.cfg.Limits.SequenceLength:
		return errorResult(textCompositionLong)
	}
	step, err := c.p.startComponent(c.run, fullName(text), params)
	if isForbidden(err) {
		return errorResult(textComponentDenied(path.key()))
	}
	if err != nil {
		return errorResult(textComponentMissing(path.key()))
	}
	if !c.runStep(step) {
		return nil
	}
	return c.out.last.Result
}

// fullName is the full name of the action that a conductor names. One or two parts without a leading slash are in the
// user's namespace (FullyQualifiedEntityName.resolveName).
func fullName(name string) string {
	if strings.HasPrefix(name, "/") || strings.Count(name, "/") > 1 {
		return name
	}
	return "/_/" + name
}

// runStep runs and counts a step. It returns false if the platform could not accept it.
func (c *composition) runStep(step *running) bool {
	if step.conductorRun {
		if err := c.p.accepted.add(step.lostRecord()); err != nil {
			c.out.fail(diskError(err).Error())
			return false
		}
		c.p.execute(step)
	} else {
		if !step.isConductor() {
			c.count.components++
		}
		c.p.runAction(step, c.p.cfg.Limits.SequenceLength)
	}
	c.out.logs = append(c.out.logs, step.id)
	c.out.last = step.record.Response
	if step.record.Duration != nil {
		c.out.duration += *step.record.Duration
	}
	c.out.memory = max(c.out.memory, step.record.memory)
	return true
}

// asObject returns a value as an object: the value itself, or {name: value}. It returns nil without a value.
func asObject(v json.RawMessage, name string) map[string]json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	var out map[string]json.RawMessage
	if json.Unmarshal(v, &out) != nil {
		out = map[string]json.RawMessage{name: v}
	}
	return out
}

// mergeFields overwrites fields of an object.
func mergeFields(object json.RawMessage, fields map[string]json.RawMessage) json.RawMessage {
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
