package queue_test

import (
	"fmt"

	"github.com/disdel/disdel/service/queue"
)

// What holds a part of the pool, or waits for one, is a job or an inference over a data set.
func ExamplePoolJob() {
	for _, j := range []queue.PoolJob{{Job: "job-01kx"}, {Job: "infer-01ky"}} {
		fmt.Println(j.Job, j.IsInference())
	}
	// Output:
	// job-01kx false
	// infer-01ky true
}
