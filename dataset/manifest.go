package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"sync"

	"github.com/disdel/disdel"
)

// Manifest describes a data set.
type Manifest struct {
	APIVersion string   `json:"apiVersion"`
	Name       string   `json:"name"` // a DNS label
	Title      string   `json:"title,omitempty"`
	License    string   `json:"license,omitempty"` // with the attribution it asks for
	Sample     []int    `json:"sample"`            // [channels height width]; of sparse rows [columns]
	Classes    int      `json:"classes"`
	ClassNames []string `json:"classNames,omitempty"`
	// LabelClasses: a person said that the labels are classes, though they look like numbers to predict.
	LabelClasses bool `json:"labelClasses,omitempty"`

	DType  string  `json:"dtype"` // of a stored value: U8 or F32; CSR: rows are sparse
	Scale  float32 `json:"scale"` // an input is stored x scale + offset
	Offset float32 `json:"offset"`
	Train  Part    `json:"train"`
	Test   Part    `json:"test"` // without rows where the set has no held-out part of its own

	Columns []Column           `json:"columns,omitempty"` // of a table: what the values of a row come from
	Sparse  *disdel.SparseData `json:"sparse,omitempty"`  // of sparse rows
}

// Part is the rows of one part and the chunks that hold them, in order.
type Part struct {
	Rows   int     `json:"rows"`
	Chunks []Chunk `json:"chunks"`
}

// Chunk is one safetensors file: x [rows C H W] and y [rows], I32; of sparse rows start [rows+1], index [entries],
// value [entries] unless all are 1, and y [rows], F32.
type Chunk struct {
	Key      string       `json:"key"`
	Rows     int          `json:"rows"`
	Entries  int          `json:"entries,omitempty"` // of sparse rows
	Size     disdel.Bytes `json:"sizeBytes"`
	Checksum string       `json:"checksum"` // sha256 of the file
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return checksumText(sum[:])
}

func checksumText(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// encode gives the bytes of the manifest as they are stored.
func (m *Manifest) encode() []byte {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic("dataset: a manifest is plain data: " + err.Error())
	}
	return append(data, '\n')
}

// Checksum is the sha256 of the manifest as stored; with the chunks' checksums in it, it stands for every row.
func (m *Manifest) Checksum() string { return checksum(m.encode()) }

// SampleLen is the number of values of a sample.
func (m *Manifest) SampleLen() int {
	n := 1
	for _, v := range m.Sample {
		n *= v
	}
	return n
}

// SampleSize is the bytes of one stored sample without its label.
func (m *Manifest) SampleSize() disdel.Bytes {
	if m.Sparse != nil {
		return m.sparseSize()
	}
	if m.DType == "U8" {
		return disdel.Bytes(m.SampleLen())
	}
	return disdel.Bytes(4 * m.SampleLen())
}

// division says how many rows of the stored parts train and how many are held out.
type division struct {
	train, heldOut int
	// all are rows of the train part, in an order drawn by lot, trained ones first; else the parts as stored
	drawn bool
}

// divide splits the rows: a test part of the set's own is the held-out part; else the rows in an order drawn from the
// split's seed, of which the last share is held out.
func (m *Manifest) divide(s disdel.Split) division {
	switch {
	case m.Test.Rows > 0:
		return division{train: m.Train.Rows, heldOut: m.Test.Rows}
	case !(s.Train > 0): // the share was not given
		return division{train: m.Train.Rows, drawn: true}
	}
	n := min(int(float64(m.Train.Rows)*min(s.Train, 1)+0.5), m.Train.Rows)
	return division{train: n, heldOut: m.Train.Rows - n, drawn: true}
}

// drawn is the order that a split's seed draws of n rows.
func drawn(s disdel.Split, n int) []int32 {
	return shuffled(rand.New(rand.NewPCG(uint64(s.Seed), 0x5eed)), nil, n)
}

// shuffled is the order that Perm of rng gives, in half of its memory, and in that of order where it has room.
func shuffled(rng *rand.Rand, order []int32, n int) []int32 {
	if cap(order) < n {
		order = make([]int32, n)
	}
	order = order[:n]
	for i := range order {
		order[i] = int32(i)
	}
	rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// invert turns an order into the place of every row, in the same memory: it follows each cycle, and marks by their
// complement the places it has been to.
func invert(order []int32) {
	for start := range order {
		if order[start] < 0 {
			continue
		}
		at, from := order[start], int32(start)
		for int(at) != start {
			next := order[at]
			order[at] = ^from
			from, at = at, next
		}
		order[start] = ^from
	}
	for i := range order {
		order[i] = ^order[i]
	}
}

// Info is what a record keeps of the data set under a split.
func (m *Manifest) Info(s disdel.Split) disdel.DataInfo {
	d := m.divide(s)
	return disdel.DataInfo{
		Name: m.Name, Checksum: m.Checksum(), Train: d.train, HeldOut: d.heldOut, Drawn: d.drawn || m.Sparse != nil,
		Sample: m.Sample, Classes: m.Classes, SampleSize: m.SampleSize(), Sparse: m.Sparse,
	}
}

// Order is the order in which a worker goes through its n rows in an epoch: the same for the same numbers, on any
// machine. It is written into the memory of order where that has room.
func Order(order []int32, seed int64, epoch, worker, n int) []int32 {
	return shuffled(rand.New(rand.NewPCG(uint64(seed), uint64(epoch)<<32|uint64(worker))), order, n)
}

var label = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
})

func checkName(name string) error {
	if label().MatchString(name) {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "name data set", Msg: "\"" + name + "\" is no data set's name",
		Hint: "use lower-case letters, digits and dashes, at most 63",
	}
}
