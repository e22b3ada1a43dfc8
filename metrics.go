package disdel

// Metrics is what an engine says of a batch. It is a value without a map, so that a training step allocates nothing: a
// measure that only some networks have gets a field of its own, which is zero elsewhere.
type Metrics struct {
	Rows    int     // of the batch
	Loss    float64 // the mean over the rows, always; of a training step it is that before the step
	Correct int     // rows whose largest output is at their class; of a training step before the step, as Loss is

	// Classes are those that an evaluation gives the rows: of each the one with the largest output. They are good until
	// the next call; nil of models of sparse rows.
	Classes []int32

	// Scores are the predictions of an evaluation by row, of models of sparse rows. They are good until the next call.
	Scores []float32
}
