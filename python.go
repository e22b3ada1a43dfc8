package disdel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Python is a user's own Python program as the network of a job. Submission fills in Code and Network, so that a job
// needs no other file.
type Python struct {
	File         string    `json:"file"`                   // net.py, or a folder of modules
	Entry        string    `json:"entry,omitempty"`        // a class or a function; "": the only one that fits
	Arguments    Arguments `json:"arguments,omitempty"`    // of the entry, by name
	Requirements string    `json:"requirements,omitempty"` // a requirements.txt
	Interpreter  string    `json:"interpreter,omitempty"`  // path of the interpreter; "": python3 of the action's image

	Code    string         `json:"code,omitempty"`    // "sha256:" and hex, of the archive of the program's files
	Network *CustomNetwork `json:"network,omitempty"` // as the program was described

	// Translation tells that disdel's own engine trains the network: its layers are those of the job. nil: Python does.
	Translation *PythonTranslation `json:"translation,omitempty"`
}

// Name is how messages and tables call the program: net.py:Net, or net.py where no entry is chosen.
func (p *Python) Name() string {
	entry := p.Entry
	if entry == "" && p.Network != nil && p.Network.Python != nil {
		entry = p.Network.Python.Entry
	}
	if entry == "" {
		return p.File
	}
	return p.File + ":" + entry
}

// Same tells whether two programs make the same network: the same entry with the same arguments, of the same files where
// both are known. Two programs that are nil are the same.
func (p *Python) Same(other *Python) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Name() == other.Name() && p.Code == other.Code && p.Requirements == other.Requirements &&
		(len(p.Arguments) == 0 && len(other.Arguments) == 0 || reflect.DeepEqual(p.Arguments, other.Arguments))
}

// Arguments are values by name, as JSON has them: nil, true and false, texts, lists, objects, and numbers as
// json.Number, which keeps 1 and 1.0 apart.
type Arguments map[string]any

// UnmarshalJSON reads a JSON object. It returns the errors of package json.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	var values map[string]any
	if err := in.Decode(&values); err != nil {
		return err
	}
	*a = values
	return nil
}

// The forms of a Python program.
const (
	PythonModule = "module" // a torch.nn.Module; loss and optimiser are the job's
	PythonTask   = "task"   // a class derived from disdel.Task
	PythonLoop   = "loop"   // a function train(run)
	PythonKubeML = "kubeml" // KubeML's KubeModel and KubeDataset
)

// The ways in which the memory of a Python program came to be known.
const (
	MemoryTraced  = "traced"  // its operations were followed without values
	MemoryProbed  = "probed"  // steps were measured in a process of their own
	MemoryLearned = "learned" // from earlier jobs of the same program
	MemoryGiven   = "given"   // the user's own figure
)

// PythonNetwork is what is known of a Python program besides its weights.
type PythonNetwork struct {
	Code        string    `json:"code"` // "sha256:" and hex, of the archive of its files
	File        string    `json:"file"` // inside the archive
	Entry       string    `json:"entry"`
	Arguments   Arguments `json:"arguments,omitempty"`
	Interpreter string    `json:"interpreter,omitempty"`
	Form        string    `json:"form"`

	// Integers are buffers of whole numbers. They travel as float32 behind the weights; a mean of them is rounded, and
	// what did not change stays exact.
	Integers  []CustomParam `json:"integers,omitempty"`
	Optimizer *OwnOptimizer `json:"optimizer,omitempty"` // nil: the job's
	OwnLoss   bool          `json:"ownLoss,omitempty"`   // training.loss does not count
	Loss      string        `json:"loss,omitempty"`      // that it was described for; outputs of crossEntropy are logits

	Memory []PythonMemory `json:"memory"`     // by batch, ascending
	Floor  Bytes          `json:"floorBytes"` // of a process that has imported the program, without shared pages
	Factor float64        `json:"factor"`     // of the allocator: what a process takes over what is alive
	Basis  string         `json:"basis"`      // how Memory came to be known

	// Translation is the network as disdel's layers, or why there are none; nil: nobody has tried.
	Translation *PythonTranslation `json:"translation,omitempty"`

	Guesses  []string          `json:"guesses,omitempty"`  // places where the values of data had to be guessed
	Warnings []string          `json:"warnings,omitempty"` // what the user should know before training
	Versions map[string]string `json:"versions,omitempty"` // of Python and of the packages that count
}

// PythonMemory is the peak of what a batch takes besides weights, gradients and moments.
type PythonMemory struct {
	Batch int   `json:"batch"`
	Train Bytes `json:"trainBytes"` // of a training step
	Infer Bytes `json:"inferBytes"` // of an evaluation
}

// PythonTranslation is the network of a Python program as layers, and how steps of disdel's own engine on them compared
// with the program's own steps.
type PythonTranslation struct {
	Layers  []Layer `json:"layers,omitempty"`
	Refused string  `json:"refused,omitempty"` // why there are no layers

	Loss      string     `json:"loss,omitempty"`      // that the program's own loss is; "": the job's
	Optimizer *Optimizer `json:"optimizer,omitempty"` // that the program's own optimiser is; nil: the job's
	Weights   string     `json:"weights,omitempty"`   // "sha256:" and hex, of the file of the program's initial weights

	Steps      int     `json:"steps,omitempty"`      // that were compared
	Rows       int     `json:"rows,omitempty"`       // of each of their batches
	RateFactor float64 `json:"rateFactor,omitempty"` // their learning rate as a share of the job's
	Difference float64 `json:"difference,omitempty"` // the largest of their losses, as a share of a loss above 1
	Speedup    float64 `json:"speedup,omitempty"`    // time of a step in Python over that in disdel's engine, one thread each
}

// MostDifference is the largest difference of losses with which two engines compute the same network.
const MostDifference = 1e-4

// Doubt says why disdel's engine should not train the network in place of Python; "": nothing speaks against it.
func (t *PythonTranslation) Doubt() string {
	switch {
	case t == nil:
		return "its description compares no engines"
	case t.Refused != "":
		return t.Refused
	case !(t.Difference <= MostDifference):
		return fmt.Sprintf("losses of %s differ by up to %.2g between PyTorch and disdel's engine", t.Compared(), t.Difference)
	case t.Speedup <= 1:
		return fmt.Sprintf("disdel's engine takes %.2g times as long for a step", 1/max(t.Speedup, 0.001))
	default:
		return ""
	}
}

// Compared names the steps whose losses were compared: "20 steps".
func (t *PythonTranslation) Compared() string {
	if t.RateFactor < 1 {
		return fmt.Sprintf("%d steps at %g of the learning rate", t.Steps, t.RateFactor)
	}
	return fmt.Sprintf("%d steps", t.Steps)
}
