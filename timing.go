package disdel

// TimingInput is what timeouts and forecasts are made of.
type TimingInput struct {
	Past []Record // jobs of any kind, newest first
	Plan Plan     // workers, rounds, limits and levels are set; timeouts are not
	Job  Job
	Data DataInfo
	Work int64     // multiply-accumulates of one sample forwards; 0: unknown
	Rate *RateInfo // of a probe; nil: none was made
}

// RateInfo is a measured speed of training.
type RateInfo struct {
	RowsPerSecond float64 `json:"rowsPerSecond"` // of one worker while it computes
	StartUp       Millis  `json:"startUpMs"`     // init, and reading the shard and the reference
	Peak          Bytes   `json:"peakBytes"`
}

// Timing is what the timeout manager says of a plan.
type Timing struct {
	Timeouts map[Task]Millis
	Source   string    // see Plan.Timeouts
	Legs     int       // activations that a worker's round takes, one after another, because the platform's maximum is shorter
	Forecast *Forecast // nil where nothing is known
	Reasons  []string  // the arithmetic, a sentence each
}
