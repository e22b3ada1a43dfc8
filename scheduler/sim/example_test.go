package sim_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/scheduler"
	"github.com/disdel/disdel/scheduler/sim"
)

// Equal seeds draw equal jobs, which are a JSON line each.
func ExampleGenerate() {
	jobs := sim.Generate(sim.Draw{Jobs: 2, Seed: 3, Every: disdel.Millis(time.Minute), Tenants: 2})
	for _, j := range jobs {
		fmt.Println(j.ID, j.Network, j.Workers, "workers", j.Epochs, "epochs")
	}
	// Output:
	// job-000000 digits-cnn 4 workers 2 epochs
	// job-000001 lenet5 2 workers 1 epochs
}

// A cloud's clock stands still while something happens.
func ExampleCloud_Call() {
	var clock sim.Clock
	half := disdel.Millis(500 * time.Millisecond)
	cloud := sim.NewCloud(&clock, sim.Config{Memory: disdel.GB, Processors: 2, Cold: half})
	train := sim.Call{Action: "train", Memory: 256 * disdel.MB, Threads: 1, Work: disdel.Millis(2 * time.Second)}
	for range 2 {
		cloud.Call(train, func(r sim.Reply) { fmt.Println("cold:", r.Cold, "after", clock.Now(), "it took", r.Duration) })
		for clock.Step() {
		}
	}
	// Output:
	// cold: true after 2.5s it took 2s
	// cold: false after 4.5s it took 2s
}

// A trace is read line by line.
func ExampleRead() {
	const network = `"network":"lenet5","input":[1,28,28],"classes":10,"rows":600,"epochs":1,"perThousandMs":60`
	jobs, err := sim.Read(strings.NewReader(`
{"job":"job-a","atMs":0,"batchSize":50,` + network + `}
{"job":"job-b","atMs":5000,"batchSize":0,` + network + `}
`))
	fmt.Println(len(jobs), err)
	// Output: 0 read trace: line 3: rows, batchSize and epochs are at least 1
}

// Forty epochs of a law under which each worker more makes the merge longer.
func ExampleLaw() {
	law := sim.Laws()[0]
	coach, best := law.Play(scheduler.Coach{}, 2, 64, 40, 1), law.BestFixed(64, 40, 1)
	fmt.Println(law.Name, coach.Seconds < 1.1*best.Seconds, best.Workers[0])
	// Output: merge true 10
}
