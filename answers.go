package disdel

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
