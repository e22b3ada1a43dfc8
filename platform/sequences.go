package platform

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// checkSequence resolves a sequence's components to full names and refuses those that are missing, too many or the
// sequence itself.
func (p *Platform) checkSequence(t tx, u *user, a *action) error {
	if len(a.Exec.Components) == 0 {
		return problem{400, textSequenceEmpty}
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
	a.Parameters = []keyValue{kv("_actions", names)} // where the sequence action of old finds them
	n, err := p.atoms(t, u, a, a.path(), 0)
	if err != nil {
		return err
	}
	if n > p.cfg.Limits.SequenceLength {
		return problem{400, textSequenceLong}
	}
	return nil
}

// atoms counts the actions a sequence comes down to, stopping once there are too many. Sequences may come to refer to
// each other after they were checked, when a binding changes: hence the depth.
func (p *Platform) atoms(t tx, u *user, a *action, self string, depth int) (int, error) {
	if depth > p.cfg.Limits.SequenceLength {
		return 0, problem{400, textSequenceCycle}
	}
	n := 0
	for _, text := range a.Exec.Components {
		path, err := parsePath(text, u.Name)
		if err != nil {
			return 0, err
		}
		if path.key() == self {
			return 0, problem{400, textSequenceCycle}
		}
		part, err := p.component(t, u, path)
		if err != nil {
			return 0, err
		}
		add := 1
		if part.path() == self { // through a binding
			return 0, problem{400, textSequenceCycle}
		}
		if part.Exec.Kind == sequenceKind {
			if add, err = p.atoms(t, u, part.action, self, depth+1); err != nil {
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
	var pr problem
	if errors.As(err, &pr) && pr.status == 404 {
		return nil, problem{400, textNoComponent}
	}
	return found, err
}

// account is what a sequence's record is made of.
type account struct {
	last     response
	logs     []string // the activations of the components
	duration int64
	memory   int // the largest component's
}

func (c *account) fail(text string) {
	result, _ := json.Marshal(map[string]string{"error": text})
	c.last = response{Result: result, Status: statusApplication, Size: len(result)}
}

// runSequence runs the components one after the other, each with the result of the one before, until one fails. It
// returns how many more actions may run: components may have changed since the sequence was checked.
func (p *Platform) runSequence(run *running, left int) int {
	started := time.Now()
	c := account{last: response{Result: run.params, Status: statusSuccess, Success: true}, logs: []string{}}
	for _, text := range run.action.Exec.Components {
		if left <= 0 {
			c.fail(textSequenceLong)
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
		left = p.carryOut(part, left)
		c.last = part.record.Response
		if part.record.Duration != nil {
			c.duration += *part.record.Duration
		}
		c.memory = max(c.memory, part.record.memory)
		if !c.last.Success {
			break
		}
	}
	p.file(run, c.record(run, started))
	return left
}

func (p *Platform) startComponent(run *running, text string, input json.RawMessage) (*running, error) {
	if run.depth >= p.cfg.Limits.SequenceLength {
		return nil, problem{400, textSequenceCycle}
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
	if !run.conducted() {
		part.depth++
	}
	if err := p.accepted.add(part.lost()); err != nil {
		return nil, unwritable(err)
	}
	return part, nil
}

func (c *account) record(run *running, started time.Time) *activation {
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

// annotations are those that every action's record has.
func (run *running) annotations() []keyValue {
	kind := run.action.Exec.Kind
	if run.conducted() {
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
