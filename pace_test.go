package disdel_test

import (
	"fmt"
	"time"

	"github.com/disdel/disdel"
)

// An action that had done 10 of 40 batches after 5 s needs some 20 s, and a margin: one heartbeat does not tell its
// noise.
func ExamplePace() {
	a := disdel.Activation{
		Invocation: disdel.Invocation{Task: disdel.TaskTrain},
		Beats:      []disdel.Beat{{At: disdel.Millis(5 * time.Second), Epoch: 1, Batch: 10, Batches: 40}},
	}
	pace, known := a.Pace()
	fmt.Println(known, pace.Whole, pace.Margin())
	// Output: true 20s 1.5
}

// The first heartbeat of an epoch comes before its first batch: there is no loss yet.
func ExampleProgress_LossText() {
	for _, p := range []disdel.Progress{{Epoch: 2}, {Epoch: 2, Batch: 1, Loss: 0.46136}} {
		fmt.Println("epoch", p.Epoch, "loss", p.LossText())
	}
	// Output:
	// epoch 2 loss -
	// epoch 2 loss 0.4614
}
