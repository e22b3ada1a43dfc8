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
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// Facts is what was found out about one cluster. Zero: not found out.
type Facts struct {
	At         time.Time    `json:"at"`
	Pool       disdel.Bytes `json:"poolBytes,omitempty"`   // memory of containers that ran at once, all nodes together
	AtLeast    bool         `json:"poolAtLeast,omitempty"` // it may be larger: all that were started ran
	Nodes      int          `json:"nodes,omitempty"`       // machines that containers ran on
	Largest    disdel.Bytes `json:"largestBytes,omitempty"`
	Processors int          `json:"processors,omitempty"` // of one container
	PerMinute  int          `json:"perMinute,omitempty"`  // the namespace's own quotas
	Concurrent int          `json:"concurrent,omitempty"`
	TellsOOM   *bool        `json:"tellsOutOfMemory,omitempty"` // the platform says that it ended an action for memory
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
