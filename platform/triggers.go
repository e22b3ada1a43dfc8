package platform

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	ruleActive   = "active"
	ruleInactive = "inactive"
)

// link is a rule as its trigger stores it. As in OpenWhisk the trigger keeps the rule's status.
type link struct {
	Action pathName `json:"action"`
	Status string   `json:"status"`
}

type trigger struct {
	header
	Parameters []keyValue      `json:"parameters"`
	Limits     struct{}        `json:"limits"`
	Rules      map[string]link `json:"rules,omitempty"` // by the rule's ns/name
}

func (v *trigger) status(rule string) string {
	if v != nil && v.Rules[rule].Status == ruleActive {
		return ruleActive
	}
	return ruleInactive
}

func (p *Platform) listTriggers(q *request) (int, any, error) {
	list, err := listEntities[trigger](p.store, triggers, q.ns)
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "triggers", list, func(v *trigger) any { return v.header })
}

func listEntities[T any](s *store, b bucket, ns string) (list []*T, err error) {
	err = s.view(func(t tx) error {
		return each(t, b, ns+"/", func(v *T) { list = append(list, v) })
	})
	return list, err
}

// mustGet reads an entity and returns a refusal if there is none.
func mustGet[T any](t tx, b bucket, key string) (*T, error) {
	v, err := get[T](t, b, key)
	if v == nil && err == nil {
		err = notFoundError(t, b, key)
	}
	return v, err
}

func (p *Platform) getTrigger(q *request) (int, any, error) {
	var out *trigger
	err := p.store.view(func(t tx) (err error) {
		out, err = mustGet[trigger](t, triggers, q.ns+"/"+q.PathValue("name"))
		return err
	})
	return httpDone, out, err
}

func (p *Platform) putTrigger(q *request) (int, any, error) {
	if err := checkName(q.PathValue("name")); err != nil {
		return 0, nil, err
	}
	var body struct {
		headerPut
		Parameters *keyValues `json:"parameters"`
	}
	if err := readEntity(q.Request, p.cfg.Limits.bodyLimit(), "parameters", &body); err != nil {
		return 0, nil, err
	}
	out := &trigger{Parameters: []keyValue{}}
	err := p.store.update(func(t tx) error {
		var before *header
		old, err := get[trigger](t, triggers, q.ns+"/"+q.PathValue("name"))
		if err != nil {
			return err
		}
		if err := checkPut(t, triggers, q, old != nil); err != nil {
			return err
		}
		if old != nil {
			*out = *old
			before = &old.header
		}
		out.header = body.next(q.ns, q.PathValue("name"), before)
		if body.Parameters != nil {
			out.Parameters = mergeParameters(*body.Parameters)
		}
		if err := p.checkTrigger(out); err != nil {
			return err
		}
		return put(t, triggers, out.path(), out)
	})
	return httpDone, out, err
}

// checkTrigger checks sizes and the form of a feed's name. The feed need not exist, because clients create it next.
func (p *Platform) checkTrigger(v *trigger) error {
	for _, a := range v.Annotations {
		var feed string
		if a.Key != "feed" {
			continue
		}
		if err := json.Unmarshal(a.Value, &feed); err != nil || feed == "" {
			return errFeedName
		}
	}
	if err := p.cfg.Limits.checkSize("annotations", v.Annotations); err != nil {
		return err
	}
	return p.cfg.Limits.checkSize("parameters", v.Parameters)
}

// deleteTrigger keeps the trigger's rules, which become inactive.
func (p *Platform) deleteTrigger(q *request) (int, any, error) {
	var out *trigger
	err := p.store.update(func(t tx) (err error) {
		key := q.ns + "/" + q.PathValue("name")
		if out, err = mustGet[trigger](t, triggers, key); err != nil {
			return err
		}
		return t.drop(triggers, key)
	})
	return httpDone, out, err
}

// fire invokes the actions of the trigger's active rules and records the outcome of each.
func (p *Platform) fire(q *request) (int, any, error) {
	payload, err := p.payload(q)
	if err != nil {
		return 0, nil, err
	}
	var v *trigger
	err = p.store.view(func(t tx) (err error) {
		v, err = mustGet[trigger](t, triggers, q.ns+"/"+q.PathValue("name"))
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	if err := p.pending.writeError(); err != nil {
		return 0, nil, err
	}
	if err := q.user.admitFire(time.Now()); err != nil {
		return 0, nil, err
	}
	active := slices.ContainsFunc(slices.Collect(maps.Values(v.Rules)),
		func(l link) bool { return l.Status == ruleActive })
	if !active {
		return httpNoRule, nil, nil
	}
	id, err := p.fired(q, v, payload)
	return httpRunning, withActivationID{id, activationIDBody{id}}, err
}

// fired starts the actions of a trigger's rules. As in OpenWhisk they get the headers of the request, including its
// authorization; the trigger's record does not have them.
func (p *Platform) fired(q *request, v *trigger, payload json.RawMessage) (string, error) {
	u := q.user
	params := map[string]json.RawMessage{}
	addParameters(params, v.Parameters)
	if err := json.Unmarshal(payload, &params); err != nil {
		return "", errMalformed(err.Error())
	}
	headers, err := json.Marshal(requestHeaders(q.Request))
	if err != nil {
		return "", err
	}
	params["__ow_headers"] = headers
	args, err := json.Marshal(params)
	if err != nil {
		return "", err
	}
	rec := &activation{
		Namespace: u.Name, Name: v.Name, Version: v.Version, Subject: u.Name, ActivationID: newActivationID(),
		Start:    time.Now().UnixMilli(),
		Response: response{Result: payload, Status: statusSuccess, Success: true}, Logs: []string{},
		Annotations: []keyValue{},
	}
	for _, rule := range slices.Sorted(maps.Keys(v.Rules)) {
		line, _ := json.Marshal(p.outcome(u, rule, v.Rules[rule], args)) // plain data
		rec.Logs = append(rec.Logs, string(line))
	}
	p.saveRecord(rec)
	return rec.ActivationID, nil
}

// outcome is a line in the log of a trigger's activation: the result of one rule.
type outcome struct {
	StatusCode   int    `json:"statusCode"`
	Success      bool   `json:"success"`
	ActivationID string `json:"activationId,omitempty"`
	Error        string `json:"error,omitempty"`
	Rule         string `json:"rule"`
	Action       string `json:"action"`
}

func (p *Platform) outcome(u *user, rule string, l link, args json.RawMessage) outcome {
	out := outcome{Rule: rule, Action: l.Action.key(), StatusCode: statusCodes[statusApplication]}
	if l.Status != ruleActive {
		out.Error = textRuleInactive(rule, out.Action)
		return out
	}
	run, err := p.start(u, l.Action, args, false)
	var pr apiError
	switch {
	case err == nil:
		out.StatusCode, out.Success, out.ActivationID = statusCodes[statusSuccess], true, run.id
	case errors.As(err, &pr):
		out.Error = pr.text
	default:
		out.StatusCode, out.Error = statusCodes[statusInternal], errInternal.text
	}
	return out
}

type rule struct {
	header
	Trigger pathName `json:"trigger"`
	Action  pathName `json:"action"`
}

// ruleStatus is a rule with its status, which its trigger stores.
type ruleStatus struct {
	*rule
	Status string `json:"status"`
}

func (p *Platform) listRules(q *request) (int, any, error) {
	list, err := listEntities[rule](p.store, rules, q.ns)
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "rules", list, func(v *rule) any { return v })
}

func (p *Platform) getRule(q *request) (int, any, error) {
	var out ruleStatus
	err := p.store.view(func(t tx) error {
		v, err := mustGet[rule](t, rules, q.ns+"/"+q.PathValue("name"))
		if err != nil {
			return err
		}
		tr, err := get[trigger](t, triggers, v.Trigger.key())
		out = ruleStatus{v, tr.status(v.path())}
		return err
	})
	return httpDone, out, err
}

type rulePut struct {
	headerPut
	Trigger string `json:"trigger"`
	Action  string `json:"action"`
}

func (p *Platform) putRule(q *request) (int, any, error) {
	if err := checkName(q.PathValue("name")); err != nil {
		return 0, nil, err
	}
	var body rulePut
	if err := readEntity(q.Request, p.cfg.Limits.bodyLimit(), "trigger", &body); err != nil {
		return 0, nil, err
	}
	var out ruleStatus
	err := p.store.update(func(t tx) error {
		old, err := get[rule](t, rules, q.ns+"/"+q.PathValue("name"))
		if err != nil {
			return err
		}
		if err := checkPut(t, rules, q, old != nil); err != nil {
			return err
		}
		v, err := body.rule(q, old)
		if err != nil {
			return err
		}
		if err := p.checkEnds(t, q.user, v); err != nil {
			return err
		}
		out.rule = v
		out.Status, err = relink(t, old, v)
		return err
	})
	return httpDone, out, err
}

func (b *rulePut) rule(q *request, old *rule) (*rule, error) {
	v := &rule{}
	var before *header
	if old != nil {
		*v = *old
		before = &old.header
	} else if b.Trigger == "" || b.Action == "" {
		return nil, errRuleIncomplete
	}
	v.header = b.next(q.ns, q.PathValue("name"), before)
	var err error
	if b.Trigger != "" {
		if v.Trigger, err = parsePath(b.Trigger, q.ns); err != nil {
			return nil, err
		}
	}
	if b.Action != "" {
		v.Action, err = parsePath(b.Action, q.ns)
	}
	return v, err
}

// checkEnds refuses a rule whose trigger or action does not exist.
func (p *Platform) checkEnds(t tx, u *user, v *rule) error {
	if v.Trigger.Path != u.Name {
		return errForbidden(v.Trigger.key())
	}
	tr, err := get[trigger](t, triggers, v.Trigger.key())
	if err != nil {
		return err
	}
	if tr == nil {
		return errRuleEnd("trigger", v.Trigger.key())
	}
	_, err = p.resolve(t, u, v.Action)
	if isNotFound(err) {
		return errRuleEnd("action", v.Action.key())
	}
	return err
}

// relink stores a rule and moves its link to its new trigger. A new rule is active; an updated rule keeps its status.
func relink(t tx, old, v *rule) (status string, err error) {
	status = ruleActive
	if old != nil {
		if status, err = unlink(t, old); err != nil {
			return "", err
		}
	}
	if err := setLink(t, v, status); err != nil {
		return "", err
	}
	return status, put(t, rules, v.path(), v)
}

// unlink removes a rule from its trigger and returns its status there.
func unlink(t tx, v *rule) (string, error) {
	tr, err := get[trigger](t, triggers, v.Trigger.key())
	if err != nil || tr == nil {
		return ruleInactive, err
	}
	status := tr.status(v.path())
	delete(tr.Rules, v.path())
	return status, put(t, triggers, tr.path(), tr)
}

func setLink(t tx, v *rule, status string) error {
	tr, err := get[trigger](t, triggers, v.Trigger.key())
	if err != nil {
		return err
	}
	if tr == nil {
		return errRuleNoTrigger
	}
	links := maps.Clone(tr.Rules)
	if links == nil {
		links = map[string]link{}
	}
	links[v.path()] = link{v.Action, status}
	tr.Rules = links
	return put(t, triggers, tr.path(), tr)
}

func (p *Platform) deleteRule(q *request) (int, any, error) {
	var out *rule
	err := p.store.update(func(t tx) (err error) {
		if out, err = mustGet[rule](t, rules, q.ns+"/"+q.PathValue("name")); err != nil {
			return err
		}
		if _, err := unlink(t, out); err != nil {
			return err
		}
		return t.drop(rules, out.path())
	})
	return httpDone, ruleStatus{out, ruleInactive}, err
}

// setRule enables or disables a rule.
func (p *Platform) setRule(q *request) (int, any, error) {
	var body struct {
		Status string `json:"status"`
	}
	if err := readEntity(q.Request, p.cfg.Limits.Payload, "status", &body); err != nil {
		return 0, nil, err
	}
	if body.Status != ruleActive && body.Status != ruleInactive {
		return 0, nil, errRuleStatus(body.Status)
	}
	err := p.store.update(func(t tx) error {
		v, err := mustGet[rule](t, rules, q.ns+"/"+q.PathValue("name"))
		if err != nil {
			return err
		}
		tr, err := get[trigger](t, triggers, v.Trigger.key())
		if err != nil || tr.status(v.path()) == body.Status {
			return err
		}
		return setLink(t, v, body.Status)
	})
	return httpDone, textBody("OK"), err
}
