package scheduler

import (
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
