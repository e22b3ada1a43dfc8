package disdel

// Tensor is a named dense float32 array in row-major order.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32 // len is the product of Shape
}

// Weights are a network's parameters and statistics, in the order of its graph, with PyTorch's names and layouts:
// convolution "NAME.weight" [out in/groups kh kw], dense "NAME.weight" [out in], "NAME.bias" [out].
type Weights []Tensor

// Len is the number of values.
func (w Weights) Len() int {
	n := 0
	for _, t := range w {
		n += len(t.Data)
	}
	return n
}

// Update is what a worker pushes after a round, and what an aggregation action makes of several: weights and the number
// of samples they stand for.
type Update struct {
	ID      UpdateID
	Attempt int
	Fence   uint64  // of the claim that it was made under; a later claim's update replaces it, an earlier one's is refused
	Samples float64 // weight in the average, above 0
	Weights Weights
	Meta    map[string]string // what its producer says of it; the same work gives the same
}

// Metrics is what an engine says of a batch. It is a value without a map, so that a training step allocates nothing: a
// measure that only some networks have gets a field of its own, which is zero elsewhere.
type Metrics struct {
	Rows    int     // of the batch
	Loss    float64 // the mean over the rows, always; of a training step it is that before the step
	Targets int     // positions with a target in an evaluation of a language model, which Loss and Correct count; 0: Rows
	Correct int     // rows whose largest output is at their class; of a training step before the step; -1: not counted

	// Classes are those that an evaluation gives the rows: of each the one with the largest output. They are good until
	// the next call; nil of models of sparse rows.
	Classes []int32
	Top5    int // with Classes: rows whose class is among the five largest outputs; -1: not counted

	// Scores are the predictions of an evaluation by row, of models of sparse rows; and of networks of numbers, all
	// outputs of a row one after the other. They are good until the next call.
	Scores []float32
}

// DataPart says which rows of a data set are meant.
type DataPart string

// The parts of a data set.
const (
	PartAll   DataPart = "all"   // as they are stored: those to learn from, then those that are held out
	PartTrain DataPart = "train" // those to learn from
	PartTest  DataPart = "test"  // those that are held out
)

// DataAsk asks a model about rows of a data set, which the action reads from its chunks.
type DataAsk struct {
	Data DataRef  `json:"data"`
	Part DataPart `json:"part"` // in whose order rows are counted
	Rows RowRange `json:"rows"`
	// Batch is how many rows are computed at once, at most. Engines add up in another order where these are few, so that
	// all actions of a question are told the same.
	Batch int `json:"batch"`
	// Key below the request's models that the answers are written under. Beside it stands a file that says that they are
	// wanted; once that is gone nothing is written.
	Answers string `json:"answers"`
}

// AnswersRef is a safetensors file of answers beside the models: of dense rows label [rows], probability [rows classes]
// and class [rows]; of sparse ones target [rows] and prediction [rows].
type AnswersRef struct {
	Key      string `json:"path"`
	Checksum string `json:"checksum"` // sha256 of the file
	Rows     int    `json:"rows"`
	Size     Bytes  `json:"sizeBytes"`
}

// Largest is the place of the largest of values, the first of equal ones: the class that probabilities are in favour
// of. Of none, and of values of which none can be compared, it is 0.
func Largest(values []float32) int {
	best := 0
	for k, v := range values {
		if v > values[best] {
			best = k
		}
	}
	return best
}
