package platform

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
)

type rule struct {
	header
	Trigger pathName `json:"trigger"`
	Action  pathName `json:"action"`
}

// ruleStatus is a rule with its status, which its trigger keeps.
type ruleStatus struct {
	*rule
	Status string `json:"status"`
}

func (p *Platform) listRules(q *request) (int, any, error) {
	list, err := listed[rule](p.store, rules, q.ns)
	if err != nil {
		return 0, nil, err
	}
	return listOf(q.Request, "rules", list, func(v *rule) any { return v })
}

func (p *Platform) getRule(q *request) (int, any, error) {
	var out ruleStatus
	err := p.store.view(func(t tx) error {
		v, err := existing[rule](t, rules, q.ns+"/"+q.PathValue("name"))
		if err != nil {
			return err
		}
		tr, err := get[trigger](t, triggers, v.Trigger.key())
		out = ruleStatus{v, tr.status(v.path())}
		return err
	})
	return 200, out, err
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
		if err := mayPut(t, rules, q, old != nil); err != nil {
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
	return 200, out, err
}

func (b *rulePut) rule(q *request, old *rule) (*rule, error) {
	v := &rule{}
	var before *header
	if old != nil {
		*v = *old
		before = &old.header
	} else if b.Trigger == "" || b.Action == "" {
		return nil, problem{400, textRuleIncomplete}
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

// checkEnds refuses a rule whose trigger or action is not there.
func (p *Platform) checkEnds(t tx, u *user, v *rule) error {
	if v.Trigger.Path != u.Name {
		return problem{403, textForbidden(v.Trigger.key())}
	}
	tr, err := get[trigger](t, triggers, v.Trigger.key())
	if err != nil {
		return err
	}
	if tr == nil {
		return problem{400, textMissing("trigger", v.Trigger.key())}
	}
	_, err = p.resolve(t, u, v.Action)
	var pr problem
	if errors.As(err, &pr) && pr.status == http.StatusNotFound {
		return problem{400, textMissing("action", v.Action.key())}
	}
	return err
}

// relink writes a rule and its link in its trigger, away from the trigger it had before. A new rule is active, an
// updated one as it was.
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

// unlink takes a rule out of its trigger and returns its status there.
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
		return problem{404, textRuleNoTrigger}
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
		if out, err = existing[rule](t, rules, q.ns+"/"+q.PathValue("name")); err != nil {
			return err
		}
		if _, err := unlink(t, out); err != nil {
			return err
		}
		return t.drop(rules, out.path())
	})
	return 200, ruleStatus{out, ruleInactive}, err
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
		return 0, nil, problem{400, textMalformed(fmt.Sprintf(textRuleStatus, body.Status))}
	}
	err := p.store.update(func(t tx) error {
		v, err := existing[rule](t, rules, q.ns+"/"+q.PathValue("name"))
		if err != nil {
			return err
		}
		tr, err := get[trigger](t, triggers, v.Trigger.key())
		if err != nil || tr.status(v.path()) == body.Status {
			return err
		}
		return setLink(t, v, body.Status)
	})
	return 200, plain("OK"), err
}
