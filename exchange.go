package disdel

// Exchange says how the workers of a job exchange their updates after every step, inside a round. Updates are exact to
// the bit: the same job comes to the same weights in any run, whatever is killed.
type Exchange struct {
	// Threshold is v of MLLess' filter: a weight's change is sent once it is more than v / sqrt(t) of the weight, t being
	// the step of the round. 0 sends every change: bulk synchronous.
	Threshold float64 `json:"threshold"`
	Slack     int     `json:"slack"`   // steps that workers may be apart
	Order     string  `json:"order"`   // of updates: OrderFixed
	Combine   string  `json:"combine"` // CombineMean or CombineSum
	Batches   string  `json:"batches"` // whose rows a worker takes: BatchesShard
}

// The words of an Exchange.
const (
	OrderFixed   = "fixed" // by step, then by member
	CombineMean  = "mean"  // a step is the mean of the workers' updates
	CombineSum   = "sum"   // or their sum, as MLLess has it
	BatchesShard = "shard" // its own
)
