package scheduler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/disdel/disdel"
)

// Allocator divides a platform among jobs. It is pure: equal input, equal grants, and all that it has to remember is in
// the demands. It is asked whenever a job arrives, ends, or gives a round's room back.
//
// now is on the clock that the demands' times are of; free is what nobody holds; jobs are those that wait and those
// that hold something (Demand.Held), in any order. What it returns is given from now on, and with Grant.Reserved what a
// job that goes on waiting will have at the latest.
//
// Gang and FIFO grant whole gangs or nothing. Greedy and GangLike are there to be compared with: they give containers
// one by one, as platforms do that know no gangs, and their grants may be parts of one.
type Allocator interface {
	Allocate(now disdel.Millis, free Capacity, jobs []Demand) []Grant
}

// Unbounded is a part of a capacity that nobody bounds, or whose bound is not known. It stays unbounded whatever is
// taken off it.
const Unbounded = 1 << 50

// Capacity is how much there is of everything that activations take up: of a platform, of what is free of it, or of
// what a gang needs.
type Capacity struct {
	Memory     disdel.Bytes `json:"memoryBytes"`           // of containers, on hosts
	Device     disdel.Bytes `json:"deviceBytes,omitempty"` // of accelerators, which Memory does not count
	Millicores int          `json:"millicores,omitempty"`  // thousandths of processors
	Devices    int          `json:"devices,omitempty"`     // accelerators
	Concurrent int          `json:"concurrent,omitempty"`  // invocations in flight, by the namespace's throttle
	PerMinute  int          `json:"perMinute,omitempty"`   // invocations of a minute, by the namespace's throttle
}

// Member is one kind of containers of a gang.
type Member struct {
	Task  disdel.Task `json:"task"`
	Count int         `json:"count"`
	Each  Capacity    `json:"each"` // what one of them takes up
}

// Gang is the containers that a job needs at once, by what they do: all of a round's train actions and the widest level
// of its tree.
type Gang []Member

// Keep is for how long a job keeps its containers.
type Keep uint8

// The two ways to hold a gang. Zero is for the job's life.
const (
	KeepLife  Keep = iota // until the job ends: every round after the first finds its containers warm
	KeepRound             // until a round ends: the job asks anew for the next one, in its old place of the queue
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

// UnmarshalText reads the word; one that nobody has becomes KeepLife.
func (k *Keep) UnmarshalText(text []byte) error {
	*k = KeepLife
	if string(text) == keepNames[KeepRound] {
		*k = KeepRound
	}
	return nil
}

// Quota is what the jobs of one tenant may have together. Zero bounds nothing.
type Quota struct {
	Jobs   int          `json:"jobs,omitempty"`        // that run at once
	Memory disdel.Bytes `json:"memoryBytes,omitempty"` // that they hold at once
	Disk   disdel.Bytes `json:"diskBytes,omitempty"`   // of data sets, models, weights and checkpoints; the service counts
	Cost   float64      `json:"costGBs,omitempty"`     // GB-s of those that run and of those that have run
	Spent  float64      `json:"spentGBs,omitempty"`    // GB-s of Cost that jobs have used up before
	Weight float64      `json:"weight,omitempty"`      // of the tenant's share beside the others'; 0: 1
}

// Demand is a job that waits for its gang, or that holds one.
type Demand struct {
	Job      disdel.JobID                   `json:"job"`
	Tenant   string                         `json:"tenant,omitempty"`   // whose job it is; "": nobody's in particular
	Priority int                            `json:"priority,omitempty"` // a higher one goes first
	Arrived  disdel.Millis                  `json:"arrivedMs"`          // when it was submitted; kept from round to round
	Gang     Gang                           `json:"gang"`
	Keep     Keep                           `json:"keep"`
	Shares   bool                           `json:"shares,omitempty"`  // it may share processors with others; see Sharing
	Takes    disdel.Interval[disdel.Millis] `json:"takesMs"`           // how long it will hold its gang; High 0: not known
	Cost     float64                        `json:"costGBs,omitempty"` // by use, that is likely; 0: not known
	Quota    Quota                          `json:"quota"`             // of its tenant
	Held     *Grant                         `json:"held,omitempty"`    // what it has; nil: nothing, it waits

	// What books keep so that a decision need not look for it: room and until of Held, or the room of Gang where nothing
	// is held, and a number of the tenant's own. Zero: it is looked for.
	room   Capacity
	until  disdel.Millis
	number int
}

// Grant is what a job gets, whole: it is given back as a whole too.
type Grant struct {
	Job  disdel.JobID  `json:"job"`
	Gang Gang          `json:"gang"`
	Room Capacity      `json:"room"` // what Gang takes up
	Keep Keep          `json:"keep"`
	From disdel.Millis `json:"fromMs"` // since when it is given; of a reservation, when it will be at the latest
	// Until is when it is given back at the latest if the job takes as long as it was expected to; 0: not known. Nobody
	// is stopped for it: it is what those that wait are told, and what back-filling goes by.
	Until    disdel.Millis `json:"untilMs,omitempty"`
	Expires  disdel.Millis `json:"expiresMs,omitempty"` // a grant that is not used by then goes back; 0: it is in use
	Reserved bool          `json:"reserved,omitempty"`  // it is not given yet
	Why      string        `json:"why,omitempty"`
}

// DemandOf is what a planned job asks of a platform that has whole: its gang, for how long it keeps it, how long that
// takes (by its forecast, or, where there is none, by its timeouts) and what it costs; and a sentence for the plan that
// says so. Whose job it is, its priority and its arrival are for the caller to add.
//
// A job keeps its containers for its life where the platform holds all of them, so that every round after the first
// finds them warm. Where it does not, what a round needs at once is granted for a round: all train actions and the
// widest level together, or, on a platform that runs the train actions in waves, one wave, in whose room the level and
// the evaluation run after it.
func DemandOf(id disdel.JobID, plan disdel.Plan, whole Capacity) (Demand, string) {
	d := Demand{Job: id}
	life, round := gangs(plan)
	var why string
	switch wave := wave(plan); {
	case whole.Holds(life.Room()):
		d.Gang = life
		why = fmt.Sprintf("containers: %v, are kept for the job's life: rounds after the first find them warm", life)
	case whole.Holds(round.Room()):
		d.Gang, d.Keep = round, KeepRound
		why = fmt.Sprintf("containers: %v, are granted round by round: the job's life would take %v", round,
			whole.Lacks(life.Room()))
	default:
		d.Gang, d.Keep = wave, KeepRound
		why = fmt.Sprintf("containers: %v, are granted round by round and shared by its tasks, which start cold: "+
			"all of a round would take %v", wave, whole.Lacks(round.Room()))
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
// every round. Back-filling uses it for jobs whose time is unknown, such as the first batch in a new home.
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

func perRound(whole disdel.Interval[disdel.Millis], rounds int) disdel.Interval[disdel.Millis] {
	n := disdel.Millis(max(1, rounds))
	return disdel.Interval[disdel.Millis]{Low: whole.Low / n, Likely: whole.Likely / n, High: (whole.High + n - 1) / n}
}

// gangs is what a plan's job keeps for its life, and what its round needs at once. An aggregation takes the place of
// train actions that have ended, of its processors and of the namespace's concurrent invocations, and so does an
// evaluation: of those they need none of their own. They need containers beside the others'.
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

// wave is the least room that a round gets on in: as many train actions as run at once, or one of another task where
// that is larger than all of these.
func wave(plan disdel.Plan) Gang {
	least := trains(plan, max(1, min(plan.Parallel, plan.Workers)))
	for _, task := range []disdel.Task{disdel.TaskAggregate, disdel.TaskEvaluate} {
		other := Gang{member(plan, task, 1)}
		if other.Room().Memory > least.Room().Memory {
			other[0].Each.Millicores, other[0].Each.Concurrent = least[0].Each.Millicores, 1
			least = other
		}
	}
	return least
}

func trains(plan disdel.Plan, n int) Gang {
	train := member(plan, disdel.TaskTrain, n)
	train.Each.Millicores, train.Each.Concurrent = 1000*max(1, plan.Threads), 1
	if most := plan.Platform.Millicores; most > 0 {
		train.Each.Millicores = min(train.Each.Millicores, most)
	}
	if most := plan.Platform.Processors; most > 0 { // more threads than there are processors share them
		train.Each.Millicores = min(train.Each.Millicores, 1000*most/n)
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

// Fits returns OverLimit with the arithmetic for a demand that can never be granted: its gang alone is more than the
// platform has, or than its tenant may have.
func Fits(whole Capacity, d Demand) error {
	needs := d.Gang.Room()
	refuse := func(hint, format string, args ...any) error {
		return &disdel.Error{
			Kind: disdel.OverLimit, Op: "admit job", Job: d.Job, Msg: fmt.Sprintf(format, args...), Hint: hint,
		}
	}
	q := d.Quota
	switch lacks := whole.Lacks(needs); {
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

// CapacityOf is what a platform has by its limits. What they do not tell is unbounded. A caller that lets jobs share
// processors multiplies Millicores by ProcessorShare: actions wait for each other, too.
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

// Plus is both together.
func (c Capacity) Plus(d Capacity) Capacity {
	c.Memory += d.Memory
	c.Device += d.Device
	c.Millicores += d.Millicores
	c.Devices += d.Devices
	c.Concurrent += d.Concurrent
	c.PerMinute += d.PerMinute
	return c
}

// Minus is what is left of c without d. Parts are below zero where more was taken than there is.
func (c Capacity) Minus(d Capacity) Capacity { return c.Plus(d.Times(-1)) }

// Times is n of it.
func (c Capacity) Times(n int) Capacity {
	return Capacity{
		Memory: disdel.Bytes(n) * c.Memory, Device: disdel.Bytes(n) * c.Device, Millicores: n * c.Millicores,
		Devices: n * c.Devices, Concurrent: n * c.Concurrent, PerMinute: n * c.PerMinute,
	}
}

// Holds tells whether there is room for d.
func (c Capacity) Holds(d Capacity) bool {
	return c.Memory >= d.Memory && c.Device >= d.Device && c.Millicores >= d.Millicores && c.Devices >= d.Devices &&
		c.Concurrent >= d.Concurrent && c.PerMinute >= d.PerMinute
}

// Lacks says what there is too little of for d, with both figures; "" where there is room.
func (c Capacity) Lacks(d Capacity) string {
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

// share is the largest part that d is of any bounded kind of c: what a tenant with d has of the platform.
func (c Capacity) share(d Capacity) float64 {
	most := 0.0
	part := func(of, taken float64) {
		if of > 0 && of < Unbounded/2 {
			most = max(most, taken/of)
		}
	}
	part(float64(c.Memory), float64(d.Memory))
	part(float64(c.Device), float64(d.Device))
	part(float64(c.Millicores), float64(d.Millicores))
	part(float64(c.Devices), float64(d.Devices))
	part(float64(c.Concurrent), float64(d.Concurrent))
	part(float64(c.PerMinute), float64(d.PerMinute))
	return most
}

// Room is what all of a gang takes up.
func (g Gang) Room() Capacity {
	var c Capacity
	for _, m := range g {
		c = c.Plus(m.Each.Times(m.Count))
	}
	return c
}

// Size is how many containers a gang is.
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
