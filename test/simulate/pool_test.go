package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/service/lease"
	"github.com/disdel/disdel/service/queue"
)

// poolWorld is processes that share one pool by its note in the history, and the jobs of three tenants that want more
// than the pool has. The queues, sessions and admissions are the real ones.
type poolWorld struct {
	*world
	couch    *couch
	capacity scheduler.Capacity
	by       string // the admission
	quotas   map[string]scheduler.Quota

	mu       sync.Mutex
	violated error
	blind    bool                          // a process decided without the history: the pool may be overbooked
	deaths   int                           // of processes: what their jobs cost may be lost
	holds    map[disdel.JobID]disdel.Bytes // what jobs use now
	admitted map[disdel.JobID]*poolJob     // jobs that began
	members  []*member                     // processes
}

// member is a process with a queue.
type member struct {
	*process
	history *history.Store
	session *lease.Session
	queue   *queue.Queue
	running sync.WaitGroup
}

// poolJob is a job of the pool.
type poolJob struct {
	demand scheduler.Demand
	at     time.Duration // when it is submitted
	rounds int
	round  int // the next
	ended  bool
	fits   bool // it can have its gang at all
}

const (
	memberMemory = 128 * disdel.MB
	sessionTime  = 4 * time.Second
	// poolLongest is the virtual time after which a job of a pool counts as starved.
	poolLongest = time.Hour
)

// newPoolWorld draws a pool, quotas and an admission.
func newPoolWorld(w *weather) *poolWorld {
	p := &poolWorld{
		world: &world{weather: w}, holds: map[disdel.JobID]disdel.Bytes{}, admitted: map[disdel.JobID]*poolJob{},
		quotas: map[string]scheduler.Quota{},
	}
	p.couch = &couch{docs: map[string]couchDoc{}, written: p.noteWritten}
	p.capacity = scheduler.CapacityOf(disdel.PlatformLimits{Pool: disdel.Bytes(4+p.draw("pool", 5)) * memberMemory})
	p.by = []string{scheduler.AdmissionGang, scheduler.AdmissionFIFO}[p.draw("admission", 2)]
	for _, tenant := range []string{"ann", "bob", "eve"} {
		p.quotas[tenant] = []scheduler.Quota{
			{}, {Jobs: 1}, {Memory: 4 * memberMemory}, {Cost: 12}, {Weight: 3},
		}[p.draw("quota "+tenant, 5)]
	}
	return p
}

// draw is a number from 0 to below n that follows from the seed and a name.
func (p *poolWorld) draw(name string, n int) int { return int(p.weather.roll(name, 0) * float64(n)) }

// drawJobs draws the jobs of a run.
func (p *poolWorld) drawJobs() (out []*poolJob) {
	for i := range 4 + p.draw("jobs", 6) {
		name := fmt.Sprintf("job-%d", i)
		tenant := []string{"ann", "bob", "eve"}[p.draw(name+" tenant", 3)]
		j := &poolJob{
			at: time.Duration(p.draw(name+" at", 8000)) * time.Millisecond, rounds: 1 + p.draw(name+" rounds", 4),
			demand: scheduler.Demand{
				Job: disdel.JobID(name), Tenant: tenant, Priority: p.draw(name+" priority", 3) - 1,
				Keep: scheduler.Keep(p.draw(name+" keep", 2)), Gang: gangOf(1 + p.draw(name+" gang", 6)), Cost: 4,
				Quota: p.quotas[tenant],
			},
		}
		if p.draw(name+" known", 2) == 1 {
			takes := disdel.Millis(time.Second) * disdel.Millis(j.rounds)
			j.demand.Takes = disdel.Interval[disdel.Millis]{Low: takes, Likely: takes, High: 3 * takes}
		}
		j.demand.Arrived = queue.SinceEpoch(p.weather.began.Add(j.at))
		q := j.demand.Quota
		q.Cost = 0
		bare := j.demand
		bare.Quota = q
		j.fits = scheduler.CheckFits(p.capacity, bare) == nil
		out = append(out, j)
	}
	return out
}

func gangOf(trains int) scheduler.Gang {
	each := scheduler.Capacity{Memory: memberMemory}
	return scheduler.Gang{{Task: disdel.TaskTrain, Count: trains, Each: each}}
}

// violates keeps the first violation.
func (p *poolWorld) violates(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.violated == nil {
		p.violated = fmt.Errorf(format, args...)
		p.weather.note("violation: %v", p.violated)
	}
}

// noteWritten checks each state of the pool that a process writes: who holds something holds all of its gang, and
// together they hold no more than there is.
func (p *poolWorld) noteWritten(id string, value json.RawMessage) {
	if !strings.HasPrefix(id, history.NotePool+"-") {
		return
	}
	var s struct {
		Books scheduler.AdmissionState `json:"books"`
	}
	if err := json.Unmarshal(value, &s); err != nil {
		p.violates("the pool's note is no JSON: %v", err)
		return
	}
	p.weather.note("note: %s", value)
	var sum disdel.Bytes
	for _, d := range s.Books.Jobs {
		if d.Held == nil {
			continue
		}
		sum += d.Held.Room.Memory
		if d.Held.Gang.Size() != d.Gang.Size() {
			p.violates("%s holds %v of %v", d.Job, d.Held.Gang, d.Gang)
		}
	}
	p.mu.Lock()
	blind := p.blind
	p.mu.Unlock()
	if sum > p.capacity.Memory && !blind {
		p.violates("the note gives %v of %v", sum, p.capacity.Memory)
	}
}

// use notes what a job uses from now on, and checks the pool and the quotas.
func (p *poolWorld) use(j *poolJob, memory disdel.Bytes) {
	p.mu.Lock()
	if memory > 0 {
		p.holds[j.demand.Job] = memory
	} else {
		delete(p.holds, j.demand.Job)
	}
	var all, own disdel.Bytes
	jobs := 0
	for id, bytes := range p.holds {
		all += bytes
		if p.admitted[id].demand.Tenant == j.demand.Tenant {
			own, jobs = own+bytes, jobs+1
		}
	}
	blind, q := p.blind, j.demand.Quota
	p.mu.Unlock()
	switch {
	case memory == 0 || blind:
	case all > p.capacity.Memory:
		p.violates("%s: jobs use %v of %v", j.demand.Job, all, p.capacity.Memory)
	case q.Memory > 0 && own > q.Memory:
		p.violates("%s: %s uses %v of its quota of %v", j.demand.Job, j.demand.Tenant, own, q.Memory)
	case q.Jobs > 0 && jobs > q.Jobs:
		p.violates("%s: %s runs %d jobs, and may run %d", j.demand.Job, j.demand.Tenant, jobs, q.Jobs)
	}
}

// begin notes that a job was admitted, and checks the tenant's budget: ended and running jobs together.
func (p *poolWorld) begin(j *poolJob) {
	p.mu.Lock()
	p.admitted[j.demand.Job] = j
	cost := 0.0
	for _, other := range p.admitted {
		if other.demand.Tenant == j.demand.Tenant {
			cost += other.demand.Cost
		}
	}
	lossy, q := p.blind || p.deaths > 0, j.demand.Quota
	p.mu.Unlock()
	if q.Cost > 0 && cost > q.Cost && !lossy {
		p.violates("%s: jobs of %s cost %v, and its budget is %v", j.demand.Job, j.demand.Tenant, cost, q.Cost)
	}
}

// newMember starts a process.
func (p *poolWorld) newMember(name string) (*member, error) {
	m := &member{process: p.process(name)}
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(poolLog{p, name})
	transport := caller{
		from: m.process, answer: p.couch.answer, late: 400 * time.Millisecond, kind: historyCall,
		instant: func(r *http.Request) bool { // a queue holds its lock meanwhile: virtual time would stand still
			return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/"+history.NotePool+"-")
		},
	}
	err := errors.New("not tried")
	for err != nil && m.alive() {
		m.history, err = history.Open(m.ctx, history.Config{URL: "http://couch.test", Transport: transport})
	}
	token := strings.ReplaceAll(name, " ", "-")
	for again := true; again && m.alive(); again = err != nil {
		m.session, err = lease.Begin(m.ctx, m.ctx, lease.Config{
			History: m.history, Token: token, Time: sessionTime, Log: log,
			Look: func(context.Context, []history.Lease) error { return nil },
		})
	}
	if err != nil {
		return m, err
	}
	m.queue, err = queue.New(queue.Config{
		Admission: p.by, Pool: "pool", Token: token, Log: log, Open: m.ctx, Life: m.ctx, Running: &m.running,
		History:  func(context.Context) (*history.Store, error) { return m.history, nil },
		Capacity: func(context.Context) (scheduler.Capacity, error) { return p.capacity, nil },
		Busy:     func(context.Context) disdel.Bytes { return 0 },
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = append(p.members, m)
	return m, err
}

// poolLog implements logrus.Hook. It notices processes that decide without the history: their error is a joined one.
type poolLog struct {
	p    *poolWorld
	name string
}

// Levels implements logrus.Hook.
func (poolLog) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (l poolLog) Fire(e *logrus.Entry) error {
	l.p.weather.note("%s: %s %v", l.name, e.Message, e.Data)
	if _, joined := e.Data[logrus.ErrorKey].(interface{ Unwrap() []error }); joined {
		l.p.mu.Lock()
		defer l.p.mu.Unlock()
		l.p.blind = true
	}
	return nil
}

// rounds is the platform of a job: an invocation starts the work of a round.
type rounds struct{ controller.Invoker }

// Invoke implements controller.Invoker.
func (rounds) Invoke(context.Context, disdel.Invocation) (disdel.ActivationID, error) {
	return "a", nil
}

// run runs a job in a process until it ends or the process dies.
func (p *poolWorld) run(m *member, j *poolJob) {
	id := j.demand.Job
	defer func() {
		if !m.alive() { // nobody hears it, but the queue's goroutine ends
			m.queue.Leave(id, 0)
		}
	}()
	err := m.queue.Enter(m.ctx, j.demand, queue.Waiter{})
	if !m.alive() {
		return
	}
	if err != nil {
		if disdel.KindOf(err) != disdel.OverLimit || j.fits && j.demand.Quota.Cost == 0 {
			p.violates("%s is refused: %v", id, err)
		}
		j.ended = true
		return
	}
	p.begin(j)
	var next scheduler.Demand
	g := m.queue.Gang(m.ctx, id, j.demand.Keep, rounds{},
		func(context.Context, controller.GrantOrder) scheduler.Demand { return next })
	now := j.demand
	for ; j.round < j.rounds; j.round++ {
		name := fmt.Sprintf("%s round %d", id, j.round)
		if p.draw(name+" changes", 3) == 0 && j.round > 0 {
			next = now
			next.Gang = gangOf(1 + p.draw(name+" gang", 4))
			if next.Quota.Cost = 0; scheduler.CheckFits(p.capacity, next) == nil {
				now = p.change(m, g, j, now, next, p.draw(name+" waits", 2) == 0)
			}
		}
		if _, err = g.Invoke(m.ctx, disdel.Invocation{Job: id, Round: j.round}); err != nil && m.alive() {
			p.violates("%s: %v", name, err)
		}
		if err != nil || !m.alive() {
			return
		}
		p.use(j, now.Gang.Room().Memory)
		sleep(m.ctx, p.weather.between(100*time.Millisecond, 3*time.Second, name))
		if now.Keep == scheduler.KeepRound || !m.alive() {
			p.use(j, 0)
		}
		if !m.alive() {
			return
		}
	}
	p.use(j, 0)
	j.ended = true
	m.queue.Leave(id, j.demand.Cost)
}

// change asks for another gang, and returns what the job demands then.
func (p *poolWorld) change(m *member, g *queue.GangInvoker, j *poolJob, now, next scheduler.Demand, waits bool,
) scheduler.Demand {
	if waits || next.Gang.Size() < now.Gang.Size() {
		p.use(j, 0) // it gives room back
	}
	refused, err := g.Grant(m.ctx, controller.GrantOrder{Round: j.round, Waits: waits})
	switch {
	case err != nil && m.alive():
		p.violates("%s: a gang of %d: %v", j.demand.Job, next.Gang.Size(), err)
	case err == nil && refused == "":
		now.Gang = next.Gang
	}
	return now
}

// live keeps a job running: if its process dies, another one takes it over once the session of the dead one has ended.
func (p *poolWorld) live(ctx context.Context, j *poolJob, home func(n int) *member) {
	if !sleep(ctx, j.at) {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		m := home(n)
		if m == nil {
			return
		}
		p.run(m, j)
		if j.ended {
			return
		}
		p.use(j, 0)
		sleep(ctx, lease.Patience+2*sessionTime)
	}
}

// peek looks at the pool as its tenants do now and then.
func (p *poolWorld) peek(ctx context.Context, m *member) {
	for n := 0; sleep(ctx, 700*time.Millisecond) && m.alive(); n++ {
		tenant := []string{"ann", "bob", "eve"}[n%3]
		list, err := m.queue.List(ctx, &tenant)
		if err != nil {
			continue
		}
		for _, job := range append(list.Holding, list.Waiting...) {
			if job.Tenant != tenant {
				p.violates("%s sees %s of %s", tenant, job.Job, job.Tenant)
			}
		}
	}
}

// runPool runs the jobs of a seed in two or three processes, and returns what they violated.
func (p *poolWorld) runPool() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	jobs := p.drawJobs()
	var homes []*member
	for i := range 2 + p.draw("members", 2) {
		m, err := p.newMember(fmt.Sprintf("process %d", i))
		if err != nil {
			return err
		}
		homes = append(homes, m)
		died := func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.deaths++
		}
		m.mayDieAt(poolCalls, died)
		if p.weather.strikes(controllerDies, m.name) {
			time.AfterFunc(p.weather.between(0, 12*time.Second, "life "+m.name), func() {
				died()
				m.kill()
			})
		}
	}
	last, err := p.newMember("last process") // it does not die
	if err != nil {
		return err
	}
	var all, peeks sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() {
			p.live(ctx, j, func(n int) *member {
				if m := homes[i%len(homes)]; n == 0 && m.alive() {
					return m
				}
				return last
			})
		})
	}
	peeks.Go(func() { p.peek(ctx, last) })
	alarm := time.AfterFunc(poolLongest, func() {
		for _, j := range jobs {
			if !j.ended {
				p.violates("%s does not end", j.demand.Job)
			}
		}
		stop()
		for _, m := range p.members {
			m.kill()
		}
	})
	all.Wait()
	alarm.Stop()
	stop()
	peeks.Wait()
	if p.violated == nil {
		p.comesBack(last, jobs)
	}
	for _, m := range p.members {
		m.kill()
		m.running.Wait()
		m.session.Close() //nolint:errcheck // its process is dead
		m.history.Close() //nolint:errcheck // its process is dead
	}
	return p.violated
}

// comesBack checks that the pool is whole once all jobs have ended: one more job gets all of it. What tenants spent is
// what their jobs cost, or less if a process died.
func (p *poolWorld) comesBack(m *member, jobs []*poolJob) {
	p.weather.calm()
	ctx, stop := context.WithTimeout(m.ctx, 2*lease.Patience)
	defer stop()
	whole := scheduler.Demand{
		Job: "job-whole", Arrived: queue.SinceEpoch(time.Now()), Gang: gangOf(int(p.capacity.Memory / memberMemory)),
	}
	if err := m.queue.Enter(ctx, whole, queue.Waiter{}); err != nil {
		p.violates("the pool does not come back: %v", err)
		return
	}
	for _, other := range p.members {
		if other.alive() { // what a process could not write it writes with the next job
			m.queue.Leave(whole.Job, 0)
			whole.Job += "x"
			other.queue.Enter(ctx, whole, queue.Waiter{}) //nolint:errcheck // the list below tells
			other.queue.Leave(whole.Job, 0)
		}
	}
	time.Sleep(2 * queue.LookEvery)
	list, err := m.queue.List(ctx, nil)
	if err != nil || len(list.Holding)+len(list.Waiting) > 0 {
		p.violates("jobs stay in the pool: %+v, %v", list, err)
	}
	for tenant := range p.quotas {
		cost := 0.0
		for _, j := range jobs {
			if p.admitted[j.demand.Job] != nil && j.demand.Tenant == tenant {
				cost += j.demand.Cost
			}
		}
		spent, err := m.queue.Spent(ctx, tenant)
		if err != nil || spent > cost || spent < cost && p.deaths == 0 {
			p.violates("%s spent %v, and its jobs cost %v: %v", tenant, spent, cost, err)
		}
	}
}

// calm ends all faults.
func (w *weather) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rates = [faults]float64{}
}

// Jobs of several tenants share a pool that is too small for all: no gang is admitted in part, the pool and the quotas
// are never passed, every job ends, and the pool comes back whole, whatever becomes of messages and processes.
func TestPoolsUnderFaultsAreShared(t *testing.T) {
	var hits [faults]int
	runSeeds(t, func(seed uint64, out io.Writer) (err error) {
		hangs := time.AfterFunc(2*time.Minute, func() {
			panic(fmt.Sprintf("seed %d hangs: virtual time stands still", seed))
		})
		defer hangs.Stop()
		//lint:ignore SA1019 libraries draw from the package's own generator
		rand.Seed(int64(seed))
		synctest.Test(t, func(*testing.T) {
			p := newPoolWorld(newWeather(seed, out, faults))
			err = p.runPool()
			for f, n := range p.weather.hits {
				hits[f] += n
			}
		})
		return err
	})
	for f, n := range hits {
		if n > 0 {
			t.Logf("%v: %d", fault(f), n)
		}
	}
}
