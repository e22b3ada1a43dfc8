package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
)

// Job is a line of a trace: a training job, its submission, and how long its work really takes. The planner sees all
// of it except the times.
type Job struct {
	ID        disdel.JobID  `json:"job"`
	At        disdel.Millis `json:"atMs"` // of submission
	Tenant    string        `json:"tenant,omitempty"`
	Priority  int           `json:"priority,omitempty"`
	Network   string        `json:"network"` // of the zoo
	Input     []int         `json:"input"`   // [channels height width]
	Classes   int           `json:"classes"`
	Rows      int           `json:"rows"`              // to train on
	HeldOut   int           `json:"heldOut,omitempty"` // to evaluate on; 0: no evaluation
	BatchSize int           `json:"batchSize"`
	Epochs    int           `json:"epochs"`
	Sync      disdel.Sync   `json:"sync,omitempty"`        // "": after every epoch
	Workers   int           `json:"workers,omitempty"`     // 0: the planner decides
	Memory    disdel.Bytes  `json:"memoryBytes,omitempty"` // of a train action; 0: by the estimate

	PerThousand disdel.Millis `json:"perThousandMs"`         // of one processor, for 1,000 rows of training
	Aggregate   disdel.Millis `json:"aggregateMs,omitempty"` // of one aggregation
	Evaluate    disdel.Millis `json:"evaluateMs,omitempty"`  // of one evaluation
	Load        disdel.Millis `json:"loadMs,omitempty"`      // of a new container, before its first work
	Slower      float64       `json:"slower,omitempty"`      // factor on these times; 0: 1

	// Fields for policies. A round takes fixed + work / workers + each * workers.
	Policy     string        `json:"policy,omitempty"` // "": static
	MinWorkers int           `json:"minWorkers,omitempty"`
	MaxWorkers int           `json:"maxWorkers,omitempty"`
	MaxCost    float64       `json:"maxCostGBs,omitempty"`
	Round      disdel.Millis `json:"roundMs,omitempty"`      // fixed part of every train action
	EachUpdate disdel.Millis `json:"eachUpdateMs,omitempty"` // of an aggregation, per update
	Noise      float64       `json:"noise,omitempty"`        // standard deviation of the logarithm of an activation's time
	Losses     Losses        `json:"losses,omitzero"`        // of training; none: always 1
}

// Losses describes how a job's loss falls: Floor + 1/(Rate x + 1/(First - Floor)) after x epochs.
type Losses struct {
	First float64 `json:"first"`
	Floor float64 `json:"floor"`
	Rate  float64 `json:"rate"`
}

func (l Losses) At(epoch float64) float64 {
	if l.First <= l.Floor {
		return 1
	}
	return l.Floor + 1/(l.Rate*epoch+1/(l.First-l.Floor))
}

// check says what is invalid in a line.
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

// lineBytes is the longest line of a trace.
const lineBytes = 1 << 20

// Read reads a trace, one job per line as JSON. It skips empty lines. It returns Invalid, with the line's number, for
// an invalid line and for a repeated id.
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

// Write writes a trace, one job per line.
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

// Draw says which jobs to draw.
type Draw struct {
	Jobs    int
	Seed    uint64
	Every   disdel.Millis // mean time between arrivals; 0: all at once
	Tenants int           // 0: 1
	Longer  int           // additional epochs of each job, so that policies have something to decide
}

// kinds are the jobs to draw from, small ones more often than large ones. Times resemble those of one core in
// docs/reference/benchmarks.md.
var kinds = []Job{
	{
		Network: "digits-cnn", Input: []int{1, 8, 8}, Classes: 10, Rows: 1500, HeldOut: 297, BatchSize: 32,
		PerThousand: ms(4),
	},
	{
		Network: "mlp", Input: []int{1, 28, 28}, Classes: 10, Rows: 60000, HeldOut: 10000, BatchSize: 64,
		PerThousand: ms(20),
	},
	{
		Network: "lenet5", Input: []int{1, 28, 28}, Classes: 10, Rows: 60000, HeldOut: 10000, BatchSize: 64,
		PerThousand: ms(60), Aggregate: ms(20), Evaluate: ms(250), Load: ms(100),
	},
	{
		Network: "resnet20-cifar", Input: []int{3, 32, 32}, Classes: 10, Rows: 10000, HeldOut: 2000, BatchSize: 64,
		PerThousand: ms(1600), Aggregate: ms(40), Evaluate: ms(1200), Load: ms(200),
	},
	{
		Network: "mobilenetv1", Input: []int{3, 32, 32}, Classes: 100, Rows: 8000, HeldOut: 1000, BatchSize: 64,
		PerThousand: ms(900), Aggregate: ms(100), Evaluate: ms(400), Load: ms(300),
	},
	{
		Network: "resnet50", Input: []int{3, 32, 32}, Classes: 10, Rows: 8000, HeldOut: 1000, BatchSize: 64,
		PerThousand: ms(4600), Aggregate: ms(400), Evaluate: ms(1500), Load: ms(500),
	},
}

func ms(n int) disdel.Millis { return disdel.Millis(n) * disdel.Millis(time.Millisecond) }

// Generate draws jobs: kind, size, workers, priority and tenant, how much slower than their kind they are (lognormal,
// 2.8 % as the paper's runs vary), and arrival (a Poisson process). Equal seeds draw equal jobs.
func Generate(d Draw) []Job {
	lot := rand.New(rand.NewPCG(d.Seed, 12))
	out := make([]Job, d.Jobs)
	at := 0.0
	for i := range out {
		k := min(lot.IntN(len(kinds)), lot.IntN(len(kinds))) // the smaller of two
		j := kinds[k]
		j.ID = disdel.JobID(fmt.Sprintf("job-%06d", i))
		j.Tenant = fmt.Sprintf("tenant-%d", lot.IntN(max(1, d.Tenants)))
		j.Priority = max(0, lot.IntN(12)-9) // three of four have none
		j.Epochs, j.Workers = 1+lot.IntN(2)+d.Longer, 1<<lot.IntN(4)
		j.Slower = math.Round(math.Exp(0.028*lot.NormFloat64())*1000) / 1000
		j.Aggregate, j.Evaluate = cmp.Or(j.Aggregate, ms(5)), cmp.Or(j.Evaluate, ms(20))
		if d.Every > 0 {
			at += lot.ExpFloat64() * float64(d.Every)
		}
		j.At = disdel.Millis(time.Duration(at).Round(time.Millisecond))
		out[i] = j
	}
	return out
}
