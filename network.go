package disdel

// CustomNetwork is what the controller knows of a network that only an action's own binary can compute: a user's
// expression graph. The binary prints it as JSON when it is run with the argument describe.
type CustomNetwork struct {
	Name        string        `json:"name"`
	Input       []int         `json:"input"`   // of one sample
	Classes     int           `json:"classes"` // outputs
	Params      []CustomParam `json:"params"`
	Activations int64         `json:"activations"` // values that the graph computes for one sample, forward
	Backward    int64         `json:"backward"`    // and for its gradients
}

// CustomParam is one array of a custom network's weights.
type CustomParam struct {
	Name      string   `json:"name"`
	Shape     []int    `json:"shape"`
	Trainable bool     `json:"trainable"`
	Fill      *float32 `json:"fill,omitempty"` // what it starts from; nil: drawn by model.init
}
