package disdel

// ProbeRequest is the parameter of a probe action. It looks at the container that it runs in, for checks of a cluster
// before a job is sent there; what it is asked to do beyond that tells how the platform ends actions.
type ProbeRequest struct {
	Probes  JobID  `json:"probes,omitempty"`  // names those that run for one check: they meet under it on Store
	Member  int    `json:"member,omitempty"`  // which of them this is, counted from 0
	Store   *Store `json:"store,omitempty"`   // Redis to reach; nil: none
	Models  string `json:"models,omitempty"`  // blob URL to reach; "": none
	CouchDB string `json:"couchdb,omitempty"` // address to reach, without a password; "": none
	Hold    Millis `json:"holdMs,omitempty"`  // stay for so long, or until Probes is cancelled on Store
	Touch   Bytes  `json:"touch,omitempty"`   // memory to take
	Exit    bool   `json:"exit,omitempty"`    // end the process without an answer
	Deaf    bool   `json:"deaf,omitempty"`    // stay beyond the deadline
	Memory  Bytes  `json:"limitBytes,omitempty"`
}

// ProbeResult is what a probe action found.
type ProbeResult struct {
	Processors int       `json:"processors"`
	Limit      Bytes     `json:"limitBytes"` // of the container's control group; 0: none is set
	Node       string    `json:"node"`       // the same for containers of one machine, "" where it is not known
	UnixMs     int64     `json:"at"`         // of the container's clock, when it began
	Left       Millis    `json:"leftMs"`     // to its deadline, when it began; 0: it was given none
	Reached    []Reached `json:"reached,omitempty"`
	Warm       bool      `json:"warm"`
}

// Reached is a store that a probe was to reach.
type Reached struct {
	What    string `json:"what"` // redis, storage or couchdb
	Took    Millis `json:"tookMs"`
	Failure *Error `json:"failure,omitempty"` // nil: it answered
}
