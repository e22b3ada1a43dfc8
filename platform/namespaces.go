package platform

import (
	"cmp"
	"crypto/subtle"
	"math"
	"sync"
	"time"

	"github.com/disdel/disdel"
)

// Namespace is one tenant. Its throttles, where zero, are those of Config.Limits.
type Namespace struct {
	Name                  string `json:"name"`
	Key                   string `json:"key,omitempty"` // uuid:key
	InvocationsPerMinute  int    `json:"invocationsPerMinute,omitempty"`
	ConcurrentInvocations int    `json:"concurrentInvocations,omitempty"`
	FiresPerMinute        int    `json:"firesPerMinute,omitempty"`
}

// user is a namespace at work.
type user struct {
	Namespace
	invocations throttle
	fires       throttle
}

func newUsers(cfg *Config) []*user {
	var out []*user
	for _, n := range append([]Namespace{{Name: cfg.Namespace, Key: cfg.AuthKey}}, cfg.Namespaces...) {
		out = append(out, newUser(cfg, n))
	}
	return out
}

func newUser(cfg *Config, n Namespace) *user {
	n.InvocationsPerMinute = cmp.Or(n.InvocationsPerMinute, cfg.Limits.InvocationsPerMinute)
	n.ConcurrentInvocations = cmp.Or(n.ConcurrentInvocations, cfg.Limits.ConcurrentInvocations)
	n.FiresPerMinute = cmp.Or(n.FiresPerMinute, cfg.Limits.FiresPerMinute)
	return &user{Namespace: n}
}

func validateNamespaces(list []Namespace, first Namespace) error {
	names, keys := map[string]bool{}, map[string]bool{}
	for _, n := range append([]Namespace{first}, list...) {
		if !entityName().MatchString(n.Name) || n.Key == "" || names[n.Name] || keys[n.Key] {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "configure platform",
				Msg: "namespaces need valid names and keys of their own, but there is " + n.Name,
			}
		}
		names[n.Name], keys[n.Key] = true, true
	}
	return nil
}

// userOf is whose key it is; every key is compared, so that time tells nothing.
func (p *Platform) userOf(key string) *user {
	var found *user
	for _, u := range p.everyone() {
		if subtle.ConstantTimeCompare([]byte(key), []byte(u.Key)) == 1 {
			found = u
		}
	}
	return found
}

// namespace is the user of a name, nil for nobody.
func (p *Platform) namespace(name string) *user {
	for _, u := range p.everyone() {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// admit lets an invocation in, or says by which throttle it may not. One that is refused may count against the minute.
func (u *user) admit(now time.Time, countRefused bool) error {
	return u.invocations.admit(now, u.InvocationsPerMinute, u.ConcurrentInvocations, countRefused)
}

// admitFire is admit for triggers, which have a throttle of their own.
func (u *user) admitFire(now time.Time) error {
	err := u.fires.admit(now, u.FiresPerMinute, math.MaxInt, false)
	if err == nil {
		u.fires.release() // no fire is in flight: its answer is immediate
	}
	return err
}

// throttle counts what a namespace does: by the wall clock's minute, as OpenWhisk does, and in flight.
type throttle struct {
	mu     sync.Mutex
	minute int64
	count  int
	flying int
}

func (t *throttle) admit(now time.Time, perMinute, atOnce int, countRefused bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := now.Unix() / 60; m != t.minute {
		t.minute, t.count = m, 0
	}
	t.count++
	var err error
	switch {
	case t.count > perMinute:
		err = problem{429, textPerMinute(t.count, perMinute)}
	case t.flying >= atOnce:
		err = problem{429, textConcurrent(t.flying, atOnce)}
	default:
		t.flying++
		return nil
	}
	if !countRefused {
		t.count--
	}
	return err
}

func (t *throttle) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying--
}

func (p *Platform) listNamespaces(q *request) (int, any, error) {
	return 200, []string{q.user.Name}, nil
}

func (p *Platform) userLimits(q *request) (int, any, error) {
	l, u := &p.cfg.Limits, q.user
	return 200, map[string]any{
		"invocationsPerMinute": u.InvocationsPerMinute, "concurrentInvocations": u.ConcurrentInvocations,
		"firesPerMinute":   u.FiresPerMinute,
		"maxParameterSize": textSize(l.Parameters), "maxActionInstances": u.ConcurrentInvocations,
		"minActionMemory": l.Memory.Min.MB(), "maxActionMemory": l.Memory.Max.MB(),
		"minActionTimeout": l.Timeout.Min.Milliseconds(), "maxActionTimeout": l.Timeout.Max.Milliseconds(),
		"minActionLogs": l.LogsMB.Min, "maxActionLogs": l.LogsMB.Max,
		"minActionConcurrency": l.Concurrency.Min, "maxActionConcurrency": l.Concurrency.Max,
	}, nil
}
