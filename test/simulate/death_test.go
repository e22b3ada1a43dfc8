package simulate

import (
	"net/http"
	"strings"
	"time"
)

// moment is when a process dies at a call: just before it, during it, or once it has had its effect.
type moment int

const (
	before moment = iota
	during
	after
)

// death is the call at which a process dies: the nth of its kind.
type death struct {
	kind  string
	n     int
	when  moment
	noted func() // called with the death; nil: nothing
}

// Calls of a controller whose order matters for the job that another one continues. Those of the job's end come last.
var jobCalls = []string{
	"prepare", "invoke", "save", "tidy package", "sweep", "commit", "blob write", "end save", "discard", "blob delete",
}

// calls of a member of a pool to the history.
var poolCalls = []string{"read pool", "write pool", "read lease", "write lease", "read other", "write other"}

// mayDieAt draws whether and where a process dies.
func (p *process) mayDieAt(kinds []string, noted func()) {
	w := p.world.weather
	if !w.strikes(diesAtCall, p.name) {
		return
	}
	pick := func(name string, n int) int { return int(w.roll(name+" "+p.name, 0) * float64(n)) }
	p.mu.Lock()
	defer p.mu.Unlock()
	p.death = &death{
		kind: kinds[pick("call", len(kinds))], n: 1 + pick("nth", 3), when: moment(pick("when", 3)), noted: noted,
	}
	switch p.death.kind {
	case "sweep", "commit", "end save", "discard": // they come once
		p.death.n = 1
	}
}

// call is called at the begin of a call to the outside. The process may die then, or later, or in the function that
// call returns, which is called once the call has had its effect.
func (p *process) call(kind string) (done func()) {
	p.mu.Lock()
	d := p.death
	if d != nil && d.kind == kind {
		d.n--
	}
	here := d != nil && d.kind == kind && d.n == 0
	p.mu.Unlock()
	if !here {
		return func() {}
	}
	die := func() {
		if p.alive() {
			p.world.weather.note("%s dies at a call: %s, %d", p.name, kind, d.when)
			p.kill()
			if d.noted != nil {
				d.noted()
			}
		}
	}
	switch d.when {
	case before:
		die()
	case during:
		time.AfterFunc(p.world.weather.between(0, 4*time.Millisecond, "dies "+p.name), die)
	case after:
		return die
	}
	return func() {}
}

// platformCall is the kind of a request to OpenWhisk.
func platformCall(r *http.Request) string {
	switch {
	case r.Method == http.MethodPut:
		return "prepare"
	case r.Method == http.MethodPost:
		return "invoke"
	case strings.Contains(r.URL.Path, "/activations/"):
		return "wait"
	default:
		return "tidy package"
	}
}

// historyCall is the kind of a request to the history of a pool.
func historyCall(r *http.Request) string {
	what := "other"
	for _, kind := range []string{"pool", "lease"} {
		if strings.Contains(r.URL.Path, "/"+kind) {
			what = kind
		}
	}
	if r.Method == http.MethodPut {
		return "write " + what
	}
	return "read " + what
}
