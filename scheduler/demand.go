package scheduler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// Allocator divides a platform among jobs. Equal input gives equal grants, and it remembers nothing. It
// is asked whenever a job arrives, ends, or gives back the room of a round.
//
// now is on the clock of the demands' times. free is what no job holds. jobs are those that wait and those that hold
// something (Demand.Held), in any order. Grants count from now on; a grant with Grant.Reserved is what a waiting job
// will have at the latest.
//
// Gangs and FIFO grant whole gangs or nothing. Greedy and GangLike are for comparison: they give containers one by
// one, as platforms without gangs do, and their grants may be parts of a gang.
type Allocator interface {
	Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant
}

// Unbounded is a part of a capacity without a bound, or with an unknown one. It stays unbounded whatever is taken
// off.
const Unbounded = 1 << 50

// Capacity is an amount of everything that activations need: of a platform, of its free part, or of a gang.
type Capacity struct {
	Memory     disdel.Bytes `json:"memoryBytes"`           // of containers, on hosts
	Device     disdel.Bytes `json:"deviceBytes,omitempty"` // of accelerators; not in Memory
	Millicores int          `json:"millicores,omitempty"`  // thousandths of processors
	Devices    int          `json:"devices,omitempty"`     // accelerators
	Concurrent int          `json:"concurrent,omitempty"`  // invocations in flight, by the namespace's throttle
	PerMinute  int          `json:"perMinute,omitempty"`   // invocations of a minute, by the namespace's throttle
}

// Member is one kind of containers of a gang.
type Member struct {
	Task  disdel.Task `json:"task"`
	Count int         `json:"count"`
	Each  Capacity    `json:"each"` // of one container
}

// Gang is the containers that a job needs at once, by task: all of a round's train actions and the widest level of
// its tree.
type Gang []Member

// Keep is how long a job keeps its containers.
type Keep uint8

// The values of Keep.
const (
	KeepLife  Keep = iota // until the job ends: every round after the first finds its containers warm
	KeepRound             // until a round ends: the job asks again for the next one, in its old place of the queue
)

var keepNames = [...]string{"life", "round"}

func (k Keep) String() string {
	if int(k) < len(keepNames) {
		return keepNames[k]
	}
	return keepNames[0]
}

// MarshalText writes the word.
func (k Keep) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the word; an unknown one becomes KeepLife.
func (k *Keep) UnmarshalText(text []byte) error {
	*k = KeepLife
	if string(text) == keepNames[KeepRound] {
		*k = KeepRound
	}
	return nil
}

// Quota bounds what the jobs of one tenant may have together. Zero is no bound.
type Quota struct {
	Jobs   int          `json:"jobs,omitempty"`        // that run at once
	Memory disdel.Bytes `json:"memoryBytes,omitempty"` // that they hold at once
	Disk   disdel.Bytes `json:"diskBytes,omitempty"`   // of data sets, models, weights and checkpoints; the service counts
	Redis  disdel.Bytes `json:"redisBytes,omitempty"`  // that unfinished jobs may keep in Redis; the service counts
	Cost   float64      `json:"costGBs,omitempty"`     // GB-s of running and past jobs
	Spent  float64      `json:"spentGBs,omitempty"`    // GB-s of Cost that past jobs used
	Weight float64      `json:"weight,omitempty"`      // of the tenant's share; 0: 1
}

// Demand is a job that waits for its gang, or that holds one.
type Demand struct {
	Job      disdel.JobID                   `json:"job"`
	Tenant   string                         `json:"tenant,omitempty"`   // "": no tenant
	Priority int                            `json:"priority,omitempty"` // a higher one goes first
	Arrived  disdel.Millis                  `json:"arrivedMs"`          // when it was submitted; kept from round to round
	Gang     Gang                           `json:"gang"`
	Keep     Keep                           `json:"keep"`
	Shares   bool                           `json:"shares,omitempty"`  // it may share processors with others; see Sharing
	Takes    disdel.Interval[disdel.Millis] `json:"takesMs"`           // expected duration; High 0: unknown
	Cost     float64                        `json:"costGBs,omitempty"` // likely cost by use; 0: unknown
	Quota    Quota                          `json:"quota"`             // of its tenant
	Began    bool                           `json:"began,omitempty"`   // it waits for a round that is not its first
	Held     *Grant                         `json:"held,omitempty"`    // nil: nothing, it waits

	// An Admission keeps these to save time: room and until of Held (or the room of Gang), and the number of the tenant.
	// Zero: note computes them.
	capacity Capacity
	until    disdel.Millis
	number   int
}

// Grant is what a job gets. It is given back as a whole.
type Grant struct {
	Job  disdel.JobID  `json:"job"`
	Gang Gang          `json:"gang"`
	Room Capacity      `json:"room"` // of Gang
	Keep Keep          `json:"keep"`
	From disdel.Millis `json:"fromMs"` // the start; of a reservation, the latest start
	// Until is when it is given back if the job takes as long as expected at most; 0: unknown. It stops no job: waiting
	// jobs are told it, and back-filling uses it.
	Until    disdel.Millis `json:"untilMs,omitempty"`
	Expires  disdel.Millis `json:"expiresMs,omitempty"` // when an unused grant goes back; 0: it is in use
	Reserved bool          `json:"reserved,omitempty"`  // it is not given yet
	Why      string        `json:"why,omitempty"`
}

// DemandOf is the demand of a planned job on a platform with capacity whole: its gang, how long it keeps it, the
// duration (by the forecast, otherwise by timeouts) and the cost; and a sentence for the plan. The caller adds
// tenant, priority and arrival.
//
// A job keeps its containers for its life if the platform holds all of them, so that rounds after the first start
// warm. Otherwise it gets per round what a round needs at once: all train actions and the widest level. If the
// platform runs the train actions in waves, that is one wave, whose room the level and the evaluation use after it.
func DemandOf(id disdel.JobID, plan disdel.Plan, total Capacity) (Demand, string) {
	d := Demand{Job: id}
	life, round := gangs(plan)
	var why string
	switch wave := wave(plan); {
	case total.Holds(life.Room()):
		d.Gang = life
		why = fmt.Sprintf("containers: %v, are kept for the job's life: rounds after the first find them warm", life)
	case total.Holds(round.Room()):
		d.Gang, d.Keep = round, KeepRound
		why = fmt.Sprintf("containers: %v, are granted round by round: the job's life would take %v", round,
			total.Shortfall(life.Room()))
	default:
		d.Gang, d.Keep = wave, KeepRound
		why = fmt.Sprintf("containers: %v, are granted round by round and shared by its tasks, which start cold: "+
			"all of a round would take %v", wave, total.Shortfall(round.Room()))
	}
	if f := plan.Forecast; f != nil {
		d.Takes, d.Cost = f.Duration, f.LeastCost(false)
	} else {
		all := LongestTime(plan)
		d.Takes = disdel.Interval[disdel.Millis]{Likely: all, High: all}
	}
	if d.Keep == KeepRound {
		d.Takes = perRound(d.Takes, plan.Rounds)
	}
	return d, why
}

// LongestTime is the longest time that a plan allows: every activation takes its timeout, in every leg and wave of
// every round. Back-filling uses it for jobs of unknown duration, such as the first batch in a new home.
func LongestTime(plan disdel.Plan) disdel.Millis {
	timeout := func(task disdel.Task) disdel.Millis {
		a, _ := plan.Action(task)
		return a.Limits.Timeout
	}
	round := disdel.Millis(max(1, plan.Legs)*plan.Waves()) * timeout(disdel.TaskTrain)
	round += disdel.Millis(len(plan.Levels)) * timeout(disdel.TaskAggregate)
	if plan.HeldOut > 0 {
		round += timeout(disdel.TaskEvaluate)
	}
	return disdel.Millis(max(1, plan.Rounds)) * round
}

func perRound(total disdel.Interval[disdel.Millis], rounds int) disdel.Interval[disdel.Millis] {
	n := disdel.Millis(max(1, rounds))
	return disdel.Interval[disdel.Millis]{Low: total.Low / n, Likely: total.Likely / n, High: (total.High + n - 1) / n}
}

// gangs is what a plan's job keeps for its life, and what its round needs at once. An aggregation or evaluation uses
// the processors and concurrent invocations of train actions that have ended, but needs containers of its own.
func gangs(plan disdel.Plan) (life, round Gang) {
	round = trains(plan, max(1, min(plan.Parallel, plan.Workers)))
	if widest := widest(plan); widest > 0 {
		round = append(round, member(plan, disdel.TaskAggregate, widest))
	}
	life = append(life, round...)
	if _, ok := plan.Action(disdel.TaskEvaluate); ok && plan.HeldOut > 0 {
		life = append(life, member(plan, disdel.TaskEvaluate, 1))
	}
	return life, round
}

// wave is the least room in which a round makes progress: the train actions that run at once, or one action of
// another task if that is larger.
func wave(plan disdel.Plan) Gang {
	minimum := trains(plan, max(1, min(plan.Parallel, plan.Workers)))
	for _, task := range []disdel.Task{disdel.TaskAggregate, disdel.TaskEvaluate} {
		other := Gang{member(plan, task, 1)}
		if other.Room().Memory > minimum.Room().Memory {
			other[0].Each.Millicores, other[0].Each.Concurrent = minimum[0].Each.Millicores, 1
			minimum = other
		}
	}
	return minimum
}

func trains(plan disdel.Plan, n int) Gang {
	train := member(plan, disdel.TaskTrain, n)
	train.Each.Millicores, train.Each.Concurrent = 1000*max(1, plan.Threads), 1
	if maximum := plan.Platform.Millicores; maximum > 0 {
		train.Each.Millicores = min(train.Each.Millicores, maximum)
	}
	if maximum := plan.Platform.Processors; maximum > 0 { // more threads than processors share them
		train.Each.Millicores = min(train.Each.Millicores, 1000*maximum/n)
	}
	return Gang{train}
}

func member(plan disdel.Plan, task disdel.Task, n int) Member {
	a, _ := plan.Action(task)
	share := DeviceShare(plan.Platform.MaxDevice, a.Limits.Device)
	return Member{Task: task, Count: n, Each: Capacity{Memory: a.Limits.Memory, Device: share}}
}

func widest(plan disdel.Plan) int {
	n := 0
	for _, l := range plan.Levels {
		n = max(n, len(l.Clusters))
	}
	return n
}

// CheckFits returns OverLimit with the arithmetic for a demand that can never be granted: its gang alone exceeds the
// platform or the tenant's quota.
func CheckFits(total Capacity, d Demand) error {
	needs := d.Gang.Room()
	refuse := func(hint, format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "admit job", Job: d.Job, Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	q := d.Quota
	switch lacks := total.Shortfall(needs); {
	case d.Gang.Size() == 0:
		return refuse("check the plan", "a job that needs no container is none")
	case lacks != "":
		return refuse("fewer or smaller actions: distribution.workers, training.batchSize; or a larger platform",
			"the gang (%v) needs %v", d.Gang, lacks)
	case q.Memory > 0 && needs.Memory > q.Memory:
		return refuse("fewer or smaller actions: distribution.workers, training.batchSize; or a larger quota",
			"the gang (%v) needs %v of memory, and the quota of %s is %v", d.Gang, needs.Memory.Beside(q.Memory),
			whose(d.Tenant), q.Memory.Beside(needs.Memory))
	case q.Cost > 0 && d.Cost > q.Cost-q.Spent:
		return refuse("fewer training.epochs, or a larger quota",
			"the job is likely to cost %.4g GB-s, and of the quota of %s, %.4g GB-s, %.4g are left", d.Cost,
			whose(d.Tenant), q.Cost, max(0, q.Cost-q.Spent))
	default:
		return nil
	}
}

func whose(tenant string) string {
	if tenant == "" {
		return "those without a tenant"
	}
	return "tenant " + tenant
}

// LeastGang is the smallest gang that any job has on a platform whose actions have at least so much memory: one train
// action, one aggregation and one evaluation.
func LeastGang(action disdel.Bytes) Gang {
	plan := disdel.Plan{
		Workers: 1, Parallel: 1, Threads: 1, HeldOut: 1, Levels: []disdel.Level{{Height: 1, Clusters: [][]int{{0}}}},
	}
	for _, task := range []disdel.Task{disdel.TaskTrain, disdel.TaskAggregate, disdel.TaskEvaluate} {
		plan.Actions = append(plan.Actions, disdel.ActionPlan{Task: task, Limits: disdel.Limits{Memory: action}})
	}
	life, _ := gangs(plan)
	return life
}

// CheckQuota returns Invalid, with the least memory that would do, for a quota that no job could ever be within.
func CheckQuota(q Quota, action disdel.Bytes) error {
	minimum := LeastGang(action)
	needs := minimum.Room().Memory
	if q.Memory == 0 || q.Memory >= needs {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "set quota",
		Msg: fmt.Sprintf("no job fits in %v of memory: the smallest gang (%v) needs %v", q.Memory.Beside(needs), minimum,
			needs.Beside(q.Memory)),
		Hint: fmt.Sprintf("use at least --memory %dMB", needs.MB()),
	}
}

// CapacityOf is the capacity of a platform by its limits. Unknown limits are unbounded. A caller that lets jobs share
// processors multiplies Millicores by ProcessorShare.
func CapacityOf(p disdel.PlatformLimits) Capacity {
	known := func(n int) int { return cmp.Or(max(0, n), Unbounded) }
	c := Capacity{
		Memory: p.Pool, Millicores: known(1000 * p.Processors), Concurrent: known(p.Concurrent),
		PerMinute: known(p.PerMinute), Devices: p.Accelerators(),
	}
	c.Device = disdel.Bytes(c.Devices) * p.MaxDevice
	if p.Pool <= 0 {
		c.Memory = Unbounded
	}
	return c
}

// Plus is the sum of both.
func (c Capacity) Plus(d Capacity) Capacity {
	c.Memory += d.Memory
	c.Device += d.Device
	c.Millicores += d.Millicores
	c.Devices += d.Devices
	c.Concurrent += d.Concurrent
	c.PerMinute += d.PerMinute
	return c
}

// Minus is c without d. Parts may be below zero.
func (c Capacity) Minus(d Capacity) Capacity { return c.Plus(d.Times(-1)) }

// Times is n times c.
func (c Capacity) Times(n int) Capacity {
	return Capacity{
		Memory: disdel.Bytes(n) * c.Memory, Device: disdel.Bytes(n) * c.Device, Millicores: n * c.Millicores,
		Devices: n * c.Devices, Concurrent: n * c.Concurrent, PerMinute: n * c.PerMinute,
	}
}

// Holds tells whether d fits into c.
func (c Capacity) Holds(d Capacity) bool {
	return c.Memory >= d.Memory && c.Device >= d.Device && c.Millicores >= d.Millicores && c.Devices >= d.Devices &&
		c.Concurrent >= d.Concurrent && c.PerMinute >= d.PerMinute
}

// Shortfall says what c has too little of for d, with both figures; "" if d fits.
func (c Capacity) Shortfall(d Capacity) string {
	var out []string
	bytes := func(what string, has, needs disdel.Bytes) {
		if needs > has {
			out = append(out, fmt.Sprintf("%v of %s, and there are %v", needs.Beside(has), what, has.Beside(needs)))
		}
	}
	count := func(what string, has, needs int) {
		if needs > has {
			out = append(out, fmt.Sprintf("%d %s, and there are %d", needs, what, has))
		}
	}
	bytes("memory", c.Memory, d.Memory)
	bytes("accelerators' memory", c.Device, d.Device)
	if d.Millicores > c.Millicores {
		out = append(out, fmt.Sprintf("%.3g processors, and there are %.3g", float64(d.Millicores)/1000,
			float64(c.Millicores)/1000))
	}
	count("accelerators", c.Devices, d.Devices)
	count("concurrent invocations", c.Concurrent, d.Concurrent)
	count("invocations a minute", c.PerMinute, d.PerMinute)
	return strings.Join(out, "; ")
}

// share is the largest share that d has of any bounded part of c.
func (c Capacity) share(d Capacity) float64 {
	maximum := 0.0
	part := func(total, taken float64) {
		if total > 0 && total < Unbounded/2 {
			maximum = max(maximum, taken/total)
		}
	}
	part(float64(c.Memory), float64(d.Memory))
	part(float64(c.Device), float64(d.Device))
	part(float64(c.Millicores), float64(d.Millicores))
	part(float64(c.Devices), float64(d.Devices))
	part(float64(c.Concurrent), float64(d.Concurrent))
	part(float64(c.PerMinute), float64(d.PerMinute))
	return maximum
}

// Room is the capacity that all containers of a gang need.
func (g Gang) Room() Capacity {
	var c Capacity
	for _, m := range g {
		c = c.Plus(m.Each.Times(m.Count))
	}
	return c
}

// Size is the number of containers of a gang.
func (g Gang) Size() int {
	n := 0
	for _, m := range g {
		n += m.Count
	}
	return n
}

// String is the arithmetic of a gang: "4 train of 512 MB and 1 aggregate of 128 MB, 2.12 GB in all".
func (g Gang) String() string {
	var parts []string
	for _, m := range g {
		parts = append(parts, fmt.Sprintf("%d %s of %v", m.Count, m.Task, m.Each.Memory))
	}
	text := strings.Join(parts, ", ")
	if n := len(parts); n > 1 {
		text = strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return fmt.Sprintf("%s, %v in all", text, g.Room().Memory)
}
