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

// link is a rule as its trigger knows it; the rule's status is here, as OpenWhisk has it.
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
	list, err := listed[trigger](p.store, triggers, q.ns)
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "triggers", list, func(v *trigger) any { return v.header })
}

func listed[T any](s *store, b bucket, ns string) (list []*T, err error) {
	err = s.view(func(t tx) error {
		return each(t, b, ns+"/", func(v *T) { list = append(list, v) })
	})
	return list, err
}

// existing reads an entity that must be there.
func existing[T any](t tx, b bucket, key string) (*T, error) {
	v, err := get[T](t, b, key)
	if v == nil && err == nil {
		err = missing(t, b, key)
	}
	return v, err
}

func (p *Platform) getTrigger(q *request) (int, any, error) {
	var out *trigger
	err := p.store.view(func(t tx) (err error) {
		out, err = existing[trigger](t, triggers, q.ns+"/"+q.PathValue("name"))
		return err
	})
	return 200, out, err
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
		if err := mayPut(t, triggers, q, old != nil); err != nil {
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
	return 200, out, err
}

// checkTrigger checks sizes and the name of a feed, not that there is such a feed: clients create it next.
func (p *Platform) checkTrigger(v *trigger) error {
	for _, a := range v.Annotations {
		var feed string
		if a.Key != "feed" {
			continue
		}
		if err := json.Unmarshal(a.Value, &feed); err != nil || feed == "" {
			return problem{400, textFeedName}
		}
	}
	if err := p.cfg.Limits.checkSize("annotations", v.Annotations); err != nil {
		return err
	}
	return p.cfg.Limits.checkSize("parameters", v.Parameters)
}

// deleteTrigger leaves the trigger's rules, which are inactive from then on.
func (p *Platform) deleteTrigger(q *request) (int, any, error) {
	var out *trigger
	err := p.store.update(func(t tx) (err error) {
		key := q.ns + "/" + q.PathValue("name")
		if out, err = existing[trigger](t, triggers, key); err != nil {
			return err
		}
		return t.drop(triggers, key)
	})
	return 200, out, err
}

// fire invokes the actions of the trigger's active rules, and records how that went.
func (p *Platform) fire(q *request) (int, any, error) {
	payload, err := p.payload(q)
	if err != nil {
		return 0, nil, err
	}
	var v *trigger
	err = p.store.view(func(t tx) (err error) {
		v, err = existing[trigger](t, triggers, q.ns+"/"+q.PathValue("name"))
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	if err := p.unfiled.stuck(); err != nil {
		return 0, nil, err
	}
	if err := q.user.admitFire(time.Now()); err != nil {
		return 0, nil, err
	}
	active := slices.ContainsFunc(slices.Collect(maps.Values(v.Rules)),
		func(l link) bool { return l.Status == ruleActive })
	if !active {
		return 204, nil, nil
	}
	id, err := p.fired(q, v, payload)
	return 202, answer{id, invoked{id}}, err
}

// fired starts the actions of a trigger's rules. As in OpenWhisk, they get the headers of the request, including its
// authorization. The trigger's own record does not have the headers.
func (p *Platform) fired(q *request, v *trigger, payload json.RawMessage) (string, error) {
	u := q.user
	params := map[string]json.RawMessage{}
	addParameters(params, v.Parameters)
	if err := json.Unmarshal(payload, &params); err != nil {
		return "", problem{400, textMalformed(err.Error())}
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
	p.keep(rec)
	return rec.ActivationID, nil
}

// outcome is a line of a trigger activation's log: what became of a rule.
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
		out.Error = textInactive(rule, out.Action)
		return out
	}
	run, err := p.start(u, l.Action, args, false)
	var pr problem
	switch {
	case err == nil:
		out.StatusCode, out.Success, out.ActivationID = statusCodes[statusSuccess], true, run.id
	case errors.As(err, &pr):
		out.Error = pr.text
	default:
		out.StatusCode, out.Error = statusCodes[statusInternal], textInternal
	}
	return out
}
