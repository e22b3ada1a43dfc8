package disdel

import "time"

// Exchange says how the workers of a job exchange their updates after every step, inside a round. In a fixed order
// updates are exact to the bit: the same job comes to the same weights in any run, whatever is killed.
type Exchange struct {
	// Threshold is v of MLLess' filter: a weight's change is sent once it is more than v / sqrt(t) of the weight, t being
	// the step of the round. 0 sends every change: bulk synchronous.
	Threshold float64 `json:"threshold"`
	Slack     int     `json:"slack"`   // steps that workers may be apart
	Order     string  `json:"order"`   // of updates: OrderFixed or OrderEager
	Combine   string  `json:"combine"` // CombineMean or CombineSum
	Batches   string  `json:"batches"` // whose rows a worker takes: BatchesShard or BatchesQueue
	// Values is the number format of what is sent: WireFloat32, also what "" means, WireBfloat16 or WireInt8. What
	// rounding loses is sent later.
	Values Wire `json:"values,omitempty"`
}

// The words of an Exchange.
const (
	OrderFixed   = "fixed" // by step, then by member
	OrderEager   = "eager" // as they come
	CombineMean  = "mean"  // a step is the mean of the workers' updates
	CombineSum   = "sum"   // or their sum, as MLLess has it
	BatchesShard = "shard" // its own
	BatchesQueue = "queue" // any: each takes the next batch of the round when it has ended one
)

// ExchangeGarbage is what the steps of a worker that exchanges updates may leave on the heap between two collections,
// beyond what an action's may: part of the worker's estimate. What a step reads is garbage after it, and a collection
// looks at the whole program, which takes longer than many a step.
const ExchangeGarbage = 4 * MB

// Queued tells whether workers take batches from a queue. nil has none.
func (x *Exchange) Queued() bool { return x != nil && x.Batches == BatchesQueue }

// StepTimes is where the time of a step with exchange went, ms each.
type StepTimes struct {
	Fetch   float64 `json:"fetchMs"`   // putting the batch together
	Compute float64 `json:"computeMs"` // the engine's step
	Select  float64 `json:"selectMs"`  // finding what is significant
	Write   float64 `json:"writeMs"`   // sending it to the store
	Wait    float64 `json:"waitMs"`    // for other workers
	Read    float64 `json:"readMs"`    // reading what they sent
	Apply   float64 `json:"applyMs"`   // adding it to the weights
}

// StepsSoFar is what the steps of a worker have come to since its activation began.
type StepsSoFar struct {
	Made   int     `json:"made"`
	Rows   int     `json:"rows"`
	Loss   float64 `json:"lossSum"`  // over the rows
	Own    float64 `json:"ownMs"`    // fetching, computing, selecting and applying
	Others float64 `json:"othersMs"` // sending, waiting and reading
}

// Minus is what was made since an earlier look; false where that was at another activation, which had made more.
func (s StepsSoFar) Minus(o StepsSoFar) (d StepsSoFar, ok bool) {
	d = StepsSoFar{s.Made - o.Made, s.Rows - o.Rows, s.Loss - o.Loss, s.Own - o.Own, s.Others - o.Others}
	return d, d.Made >= 0 && d.Rows >= 0 && d.Own >= 0 && d.Others >= 0
}

// Add adds another worker's steps.
func (s *StepsSoFar) Add(o StepsSoFar) {
	s.Made, s.Rows, s.Loss, s.Own, s.Others = s.Made+o.Made, s.Rows+o.Rows, s.Loss+o.Loss, s.Own+o.Own, s.Others+o.Others
}

// StepParts are the names of the parts of a step, in the order of Parts.
var StepParts = [...]string{"fetch", "compute", "select", "write", "wait", "read", "apply"}

// Parts are the parts of a step, ms each.
func (t StepTimes) Parts() [len(StepParts)]float64 {
	return [...]float64{t.Fetch, t.Compute, t.Select, t.Write, t.Wait, t.Read, t.Apply}
}

// Total is the time of the whole step, ms.
func (t StepTimes) Total() (sum float64) {
	for _, part := range t.Parts() {
		sum += part
	}
	return sum
}

// Add adds a share of other times.
func (t *StepTimes) Add(o StepTimes, share float64) {
	t.Fetch += share * o.Fetch
	t.Compute += share * o.Compute
	t.Select += share * o.Select
	t.Write += share * o.Write
	t.Wait += share * o.Wait
	t.Read += share * o.Read
	t.Apply += share * o.Apply
}

// StepStretch is some steps of a round that follow each other; times, values and bytes are those of one of them, in
// the mean.
type StepStretch struct {
	Last   int       `json:"lastStep"` // of the round, from 1; the last of all sends what is still owed
	Steps  int       `json:"steps"`
	End    time.Time `json:"end"`
	Rows   int       `json:"rows"` // trained, by all workers that are in it
	Loss   float64   `json:"loss"` // mean over those rows, each under the weights of its own step
	Values float64   `json:"values"`
	Bytes  float64   `json:"bytes"` // that a worker sent
	StepTimes
}

// StepCourse is what the steps of a round came to on a worker, or in the mean of all.
type StepCourse struct {
	Median    float64       `json:"medianMs"` // time of a step
	High      float64       `json:"p95Ms"`    // the time that 19 of 20 steps stay below
	Stretches []StepStretch `json:"stretches"`
}

// Mean is the times of a step in the mean of the whole course, with the bytes that a worker sent of it.
func (c *StepCourse) Mean() (times StepTimes, bytes float64) {
	steps := 0
	for _, s := range c.Stretches {
		steps += s.Steps
	}
	for _, s := range c.Stretches {
		share := float64(s.Steps) / float64(max(1, steps))
		times.Add(s.StepTimes, share)
		bytes += share * s.Bytes
	}
	return times, bytes
}
