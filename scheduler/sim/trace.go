package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/disdel/disdel"
)

// Job is a line of a trace: a training job, when it comes, and how long its work really takes. The planner sees all of
// it but the times.
type Job struct {
	ID        disdel.JobID  `json:"job"`
	At        disdel.Millis `json:"atMs"` // when it is submitted
	Tenant    string        `json:"tenant,omitempty"`
	Priority  int           `json:"priority,omitempty"`
	Network   string        `json:"network"` // of the zoo
	Input     []int         `json:"input"`   // [channels height width]
	Classes   int           `json:"classes"`
	Rows      int           `json:"rows"`              // to train on
	HeldOut   int           `json:"heldOut,omitempty"` // to evaluate on; 0: it is not evaluated
	BatchSize int           `json:"batchSize"`
	Epochs    int           `json:"epochs"`
	Sync      disdel.Sync   `json:"sync,omitempty"`        // "": after every epoch
	Workers   int           `json:"workers,omitempty"`     // 0: as the planner says
	Memory    disdel.Bytes  `json:"memoryBytes,omitempty"` // of a train action; 0: by the estimate

	PerThousand disdel.Millis `json:"perThousandMs"`         // of one processor, for 1,000 rows of training
	Aggregate   disdel.Millis `json:"aggregateMs,omitempty"` // of one aggregation
	Evaluate    disdel.Millis `json:"evaluateMs,omitempty"`  // of one evaluation
	Load        disdel.Millis `json:"loadMs,omitempty"`      // of a new container, before its first work
	Slower      float64       `json:"slower,omitempty"`      // all of these, times this; 0: 1

	// What matters to policies. Times are the law's: a round is fixed + work / workers + each * workers.
	Policy     string        `json:"policy,omitempty"` // "": static
	MinWorkers int           `json:"minWorkers,omitempty"`
	MaxWorkers int           `json:"maxWorkers,omitempty"`
	MaxCost    float64       `json:"maxCostGBs,omitempty"`
	Round      disdel.Millis `json:"roundMs,omitempty"`      // of every train action, whatever it trains
	EachUpdate disdel.Millis `json:"eachUpdateMs,omitempty"` // of an aggregation, for each update that it reads
	Noise      float64       `json:"noise,omitempty"`        // deviation of the logarithm of an activation's time
	Losses     Losses        `json:"losses,omitzero"`        // of training; none: 1 all the time
}

// Losses is how a job's loss falls: Floor + 1/(Rate x + 1/(First - Floor)) after x epochs.
type Losses struct {
	First float64 `json:"first"`
	Floor float64 `json:"floor"`
	Rate  float64 `json:"rate"`
}

// At is the loss after so many epochs.
func (l Losses) At(epoch float64) float64 {
	if l.First <= l.Floor {
		return 1
	}
	return l.Floor + 1/(l.Rate*epoch+1/(l.First-l.Floor))
}

// check says what cannot be of a line.
func (j *Job) check() string {
	switch {
	case j.ID == "":
		return "job is missing"
	case j.Network == "":
		return "network is missing"
	case len(j.Input) != 3 || j.Classes < 1:
		return "input is [channels height width], and classes at least 1"
	case j.Rows < 1 || j.BatchSize < 1 || j.Epochs < 1:
		return "rows, batchSize and epochs are at least 1"
	case j.HeldOut < 0 || j.Workers < 0 || j.Memory < 0 || j.Slower < 0:
		return "heldOut, workers, memoryBytes and slower are not below 0"
	case j.MinWorkers < 0 || j.MaxWorkers < 0 || j.MaxCost < 0 || j.Round < 0 || j.EachUpdate < 0 || j.Noise < 0:
		return "minWorkers, maxWorkers, maxCostGBs, roundMs, eachUpdateMs and noise are not below 0"
	case j.Losses.Rate < 0 || j.Losses.Floor < 0:
		return "rate and floor of losses are not below 0"
	case j.At < 0 || j.PerThousand < 0 || j.Aggregate < 0 || j.Evaluate < 0 || j.Load < 0:
		return "times are not below 0"
	default:
		return ""
	}
}

// lineBytes is the longest line of a trace that is read.
const lineBytes = 1 << 20

// Read reads a trace: a job a line, as JSON. Empty lines are none. It returns Invalid, with the number of the line, for
// one that is no job, and for an id that comes twice.
func Read(r io.Reader) ([]Job, error) {
	var out []Job
	seen := map[disdel.JobID]int{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineBytes)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var j Job
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&j); err != nil {
			return nil, wrong(n, "is no job", err)
		}
		if why := j.check(); why != "" {
			return nil, wrong(n, why, nil)
		}
		if first, twice := seen[j.ID]; twice {
			return nil, wrong(n, fmt.Sprintf("%s stands in line %d already", j.ID, first), nil)
		}
		seen[j.ID] = n
		out = append(out, j)
	}
	if err := lines.Err(); err != nil {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "read trace", Msg: "it cannot be read", Err: err}
	}
	return out, nil
}

func wrong(line int, why string, err error) error {
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read trace", Msg: fmt.Sprintf("line %d: %s", line, why), Err: err,
		Hint: "disdel simulate --generate 3 --print shows lines that are jobs",
	}
}

// Write writes a trace, a job a line.
func Write(w io.Writer, jobs []Job) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	for i := range jobs {
		if err := e.Encode(&jobs[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}
