package native

import "github.com/disdel/disdel"

// Config is what an engine is made for.
type Config struct {
	Batch     int              // the most rows of a call, at least 1
	Optimizer disdel.Optimizer // of Step
	Loss      string           // crossEntropy (default), binaryCrossEntropy or mse
	ClipNorm  float64          // longest gradient, all weights together; 0: any
	Threads   int              // workers; 0 is one
	Seed      int64            // of dropout
	Memory    disdel.Bytes     // the action's limit, 0 if unknown: a plan above it is refused
	Training  bool             // Step will be called
}
