// Package clusterfacts keeps what `disdel doctor` found out about clusters: what no API tells, and what jobs are
// planned by afterwards.
//
// It asks nobody anything; facts of a cluster that was not looked at are zero. They lie in a file of the home folder,
// one entry for each address of an OpenWhisk. Invariant: the file is whole at any moment, whoever writes.
package clusterfacts

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Facts is what was found out about one cluster. Zero: not found out.
type Facts struct {
	At         time.Time    `json:"at"`
	Pool       disdel.Bytes `json:"poolBytes,omitempty"`   // memory of containers that ran at once, all nodes together
	PoolAt     time.Time    `json:"poolAt,omitzero"`       // when Pool was found out; zero: at At
	AtLeast    bool         `json:"poolAtLeast,omitempty"` // it may be larger: all that were started ran
	Nodes      int          `json:"nodes,omitempty"`       // machines that containers ran on
	Largest    disdel.Bytes `json:"largestBytes,omitempty"`
	Processors int          `json:"processors,omitempty"` // of one container
	PerMinute  int          `json:"perMinute,omitempty"`  // the namespace's own quotas
	Concurrent int          `json:"concurrent,omitempty"`
	TellsOOM   *bool        `json:"tellsOutOfMemory,omitempty"` // the platform says that it ended an action for memory
	Doubts     []Doubt      `json:"doubts,omitempty"`           // facts that jobs have contradicted since; none twice
}

// Names of facts that jobs can contradict.
const (
	Pool       = "pool"
	PerMinute  = "perMinute"
	Concurrent = "concurrent"
)

// Doubt is the evidence from a job that a fact is no longer true.
type Doubt struct {
	Fact string    `json:"fact"` // Pool, PerMinute or Concurrent
	At   time.Time `json:"at"`
	Why  string    `json:"why"` // a clause for a person
}

// DoubtOf is the doubt about a fact, false where there is none.
func (f Facts) DoubtOf(fact string) (Doubt, bool) {
	i := slices.IndexFunc(f.Doubts, func(d Doubt) bool { return d.Fact == fact })
	if i < 0 {
		return Doubt{}, false
	}
	return f.Doubts[i], true
}

// Trusted is the facts without those that are doubted.
func (f Facts) Trusted() Facts {
	for _, d := range f.Doubts {
		switch d.Fact {
		case Pool:
			f.Pool = 0
		case PerMinute:
			f.PerMinute = 0
		case Concurrent:
			f.Concurrent = 0
		}
	}
	return f
}

// PoolFoundAt is when the memory of the pool was found out.
func (f Facts) PoolFoundAt() time.Time {
	if f.PoolAt.IsZero() {
		return f.At
	}
	return f.PoolAt
}

// Renewed returns the facts after another look: the new ones, except perhaps the pool. A pool that was measured whole
// and that no job has contradicted stays if the new look did not measure the pool, or only found that it has at least
// less.
func Renewed(old, found Facts) Facts {
	complete := old.Trusted().Pool > 0 && !old.AtLeast
	if found.Pool == 0 && !complete || found.Pool > 0 && (!found.AtLeast || !complete || found.Pool > old.Pool) {
		return found
	}
	found.Pool, found.AtLeast, found.Nodes, found.PoolAt = old.Pool, false, old.Nodes, old.PoolFoundAt()
	return found
}

// Shared is the processors that all containers of the cluster share, 0 where they were not found out.
func (f Facts) Shared() int { return f.Processors * max(1, f.Nodes) }

// File is where they are kept.
func File(home string) string { return filepath.Join(home, "clusters.json") }

// key is one cluster, by its address without the slash that some write behind it.
func key(host string) string { return strings.TrimSuffix(host, "/") }

func all(home string) (map[string]Facts, error) {
	out := map[string]Facts{}
	text, err := os.ReadFile(File(home))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return map[string]Facts{}, &disdel.Error{
			Kind: disdel.Corrupt, Op: "read what is known of clusters", Msg: File(home), Err: files.Plain(err),
			Hint: "remove the file, and run disdel doctor again",
		}
	}
	return out, nil
}

// Read is what is known of the cluster at an address, false where nothing is. It returns Corrupt for a file that cannot
// be read.
func Read(home, host string) (Facts, bool, error) {
	known, err := all(home)
	f, ok := known[key(host)]
	return f, ok, err
}

// Write keeps what is known of a cluster in place of what was. A file that could not be read is written anew.
func Write(home, host string, f Facts) error {
	known, _ := all(home) //nolint:errcheck // what is in it can be found out again
	known[key(host)] = f
	text, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	return files.WriteWhole(File(home), ".clusters-*", append(text, '\n'))
}

// Doubting notes that a job contradicts a fact about the cluster at an address. It keeps an earlier doubt about the
// same fact. It returns Corrupt for a file that cannot be read.
func Doubting(home, host string, d Doubt) error {
	f, known, err := Read(home, host)
	if _, doubted := f.DoubtOf(d.Fact); err != nil || !known || doubted {
		return err
	}
	f.Doubts = append(slices.Clip(f.Doubts), d)
	return Write(home, host, f)
}
