package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/disdel/disdel"
)

// Draw says what jobs are drawn.
type Draw struct {
	Jobs    int
	Seed    uint64
	Every   disdel.Millis // mean time from one job's arrival to the next's; 0: all come at once
	Tenants int           // 0: 1
	Longer  int           // epochs that each job has more, so that policies have something to decide
}

// kinds are the jobs that are drawn from, small ones more often than large ones. Times are of the order that one core
// takes in docs/reference/benchmarks.md.
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

// Generate draws jobs: their kinds, sizes, workers, priorities and tenants, how much slower than their kind they are
// (lognormal, 2.8 % as the paper's runs vary), and when they come (a Poisson process). Equal seeds draw equal jobs.
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
