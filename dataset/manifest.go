package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
)

// Manifest describes a data set.
type Manifest struct {
	APIVersion string   `json:"apiVersion"`
	Name       string   `json:"name"` // a DNS label
	Title      string   `json:"title,omitempty"`
	License    string   `json:"license,omitempty"` // with its attribution
	Sample     []int    `json:"sample"`            // [channels height width]; of sparse rows [columns]
	Classes    int      `json:"classes"`
	ClassNames []string `json:"classNames,omitempty"`
	// Targets are the numbers of each row to predict, as many as Classes; nil: rows have classes, or are sparse.
	Targets []disdel.Target `json:"targets,omitempty"`
	// LabelClasses says that the labels are classes although they look like numbers to predict.
	LabelClasses bool `json:"labelClasses,omitempty"`

	DType  string  `json:"dtype"` // of a stored value: U8 or F32; CSR: rows are sparse
	Scale  float32 `json:"scale"` // an input is stored x scale + offset
	Offset float32 `json:"offset"`
	Train  Part    `json:"train"`
	Test   Part    `json:"test"` // empty if the set has no held-out part of its own
	// Duplicates is the number of Test's rows that equal a row of Train, label included; of many rows an estimate. Only
	// dense rows that were added as a stream are compared.
	Duplicates int `json:"duplicates,omitempty"`

	Columns []Column `json:"columns,omitempty"` // of a table
	// Label is the column of the classes in a table's file, and Missing are its texts that stand for no value besides the
	// usual ones.
	Label   string   `json:"label,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Decimal is the mark of decimals in a table's file: a comma, or a point beside commas for thousands; "": a point.
	Decimal string `json:"decimal,omitempty"`
	// Separator is the character between the columns of a table's file that the user named; "": it was detected.
	Separator string `json:"separator,omitempty"`
	// Tokenizer is the checksum of the tokenizer.json beside the manifest, if the rows are tokens of text.
	Tokenizer string `json:"tokenizer,omitempty"`
	// Tokens is one more than the largest token of a row of text. An embedding needs as many rows. 0: not known.
	Tokens int `json:"tokens,omitempty"`
	// NextToken says that rows are texts whose next tokens are learned; Classes is the number of tokens.
	NextToken bool               `json:"nextToken,omitempty"`
	Sparse    *disdel.SparseData `json:"sparse,omitempty"` // of sparse rows
}

// Part is the rows of one part and their chunks, in order.
type Part struct {
	Rows   int     `json:"rows"`
	Chunks []Chunk `json:"chunks"`
}

// Chunk is one safetensors file: x [rows C H W] and y [rows], I32, or for numbers to predict y [rows targets], F32,
// standardised. Of sparse rows it has start [rows+1], index [entries], value [entries] unless all are 1, and y [rows],
// F32.
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

// encode returns the stored bytes of the manifest. That of a table of very many columns is one line: blanks were a
// third of it.
func (m *Manifest) encode() []byte {
	data, err := []byte(nil), error(nil)
	if len(m.Columns) > mostColumns {
		data, err = json.Marshal(m)
	} else {
		data, err = json.MarshalIndent(m, "", "  ")
	}
	if err != nil {
		panic("dataset: a manifest is plain data: " + err.Error())
	}
	return append(data, '\n')
}

// Checksum is the sha256 of the stored manifest; since that has the chunks' checksums, it covers every row.
func (m *Manifest) Checksum() string { return checksum(m.encode()) }

// SampleLen is the number of values of a sample.
func (m *Manifest) SampleLen() int {
	n := 1
	for _, v := range m.Sample {
		n *= v
	}
	return n
}

// SampleSize is the size of one stored sample without its label.
func (m *Manifest) SampleSize() disdel.Bytes {
	if m.Sparse != nil {
		return m.sparseSize()
	}
	if m.DType == "U8" {
		return disdel.Bytes(m.SampleLen())
	}
	return disdel.Bytes(4 * m.SampleLen())
}

// division says how many rows of the stored parts are for training and how many are held out.
type division struct {
	train, heldOut int
	// all are rows of the train part in random order, training rows first; else the parts as stored
	drawn bool
}

// divide splits the rows. A test part of the set's own is held out; else the rows are in an order drawn from the
// split's seed, and the last share is held out.
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

// drawn returns the order of n rows that a split's seed draws.
func drawn(s disdel.Split, n int) []int32 {
	return shuffled(rand.New(rand.NewPCG(uint64(s.Seed), 0x5eed)), nil, n)
}

// shuffled returns the order of rng.Perm in half of its memory, in that of order if there is room.
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

// invert turns an order into the place of every row, in the same memory: it follows each cycle, and marks visited
// places by their complement.
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

// Info describes the data set under a split, for a record.
func (m *Manifest) Info(s disdel.Split) disdel.DataInfo {
	d := m.divide(s)
	return disdel.DataInfo{
		Name: m.Name, Checksum: m.Checksum(), Train: d.train, HeldOut: d.heldOut, Drawn: d.drawn || m.Sparse != nil,
		Sample: m.Sample, Classes: m.Classes, Targets: m.Targets, SampleSize: m.SampleSize(), Sparse: m.Sparse,
		Tokenizer: m.Tokenizer, Tokens: m.Tokens, NextToken: m.NextToken, Table: m.tableChecksum(),
	}
}

// Table describes how rows of a table's file become values. A model keeps it, so that it takes rows as files have them.
type Table struct {
	Columns []Column `json:"columns"`
	Label   string   `json:"label,omitempty"`   // the column of the classes; "": rows have targets
	Missing []string `json:"missing,omitempty"` // texts that stand for no value, besides the usual ones
	Decimal string   `json:"decimal,omitempty"` // the mark of decimals; the other of comma and point separates thousands
	// Separator is the character between the columns that the user named; "": it was detected.
	Separator string `json:"separator,omitempty"`
}

// Table returns the description of a table's columns as JSON; nil for a data set that is no table, or that an earlier
// version added.
func (m *Manifest) Table() []byte {
	if len(m.Columns) == 0 || m.Sparse != nil || m.Label == "" && m.Targets == nil {
		return nil
	}
	data, err := json.Marshal(Table{m.Columns, m.Label, m.Missing, m.Decimal, m.Separator})
	if err != nil {
		panic("dataset: a description of columns is plain data: " + err.Error())
	}
	return data
}

func (m *Manifest) tableChecksum() string {
	if data := m.Table(); data != nil {
		return checksum(data)
	}
	return ""
}

// Order is the order of a worker's n rows in an epoch: the same for the same numbers, on any machine. It uses the
// memory of order if there is room.
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

// Limits of a manifest's numbers: no product of them overflows, and nothing is allocated by an unchecked number.
const (
	largestManifest = 512 << 20 // bytes of the manifest itself
	largestSample   = 1 << 28   // values of a row
	largestPart     = 1 << 40   // rows of a part
	largestHeader   = 64 << 10  // bytes of a chunk except values and labels
	largestClasses  = 1 << 24
)

// checkStored returns Invalid for a manifest that readManifest would refuse for its size.
func (m *Manifest) checkStored(size int) error {
	if size <= largestManifest {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "add data set " + m.Name,
		Msg: fmt.Sprintf("its %s need %v of description, and %v are the most", disdel.Counted(len(m.Columns), "column"),
			disdel.Bytes(size), disdel.Bytes(largestManifest)),
		Hint: "use shorter names of columns, or leave columns out (--skip)",
	}
}

var sumForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
})

// readManifest reads a manifest. It returns Conflict for one of another version of disdel, and Corrupt for what Add
// could not have written under that name: the plan and every action rely on its numbers.
func readManifest(name string, data []byte) (Manifest, error) {
	var m Manifest
	if len(data) > largestManifest {
		return m, broken(name, nil,
			fmt.Sprintf("it has %v, and no manifest has more than %v", disdel.Bytes(len(data)), disdel.Bytes(largestManifest)))
	}
	err := json.Unmarshal(data, &m) // goes on behind a field of another type
	if m.APIVersion != "" {
		if err := disdel.CheckVersion("read data set", name, m.APIVersion); err != nil {
			return Manifest{}, err
		}
	}
	if err != nil {
		return Manifest{}, broken(name, err)
	}
	if faults := m.faults(name); len(faults) > 0 {
		return Manifest{}, broken(name, nil, faults...)
	}
	return m, nil
}

// broken is the error of an invalid manifest.
func broken(name string, cause error, why ...string) error {
	if more := len(why) - mostFaults; more > 0 {
		why = append(why[:mostFaults:mostFaults], fmt.Sprintf("and %d more", more))
	}
	msg := fmt.Sprintf("the manifest of %s is damaged (%s): %s", name, manifestKey(name), strings.Join(why, "; "))
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read data set", Msg: strings.TrimSuffix(msg, ": "), Err: cause,
		Hint: rebuildHint(name),
	}
}

// mostFaults is how many faults of a manifest are listed.
const mostFaults = 6

// rebuildHint says how to add a data set again.
func rebuildHint(name string) string {
	if slices.Contains(Known(), name) {
		return "disdel dataset add " + name + " --overwrite"
	}
	return "add it again from its files, with --overwrite (disdel dataset add --help), or remove it: " +
		"disdel dataset remove " + name
}

// faults lists what is wrong with a manifest under a name.
func (m *Manifest) faults(name string) (list []string) {
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	fault(m.APIVersion == "", "it has no apiVersion")
	fault(m.Name != name, "it is that of %.80q", m.Name)
	fault(m.DType != "U8" && m.DType != "F32" && m.DType != sparseType, "dtype is %.20q, neither U8 nor F32", m.DType)
	fault(m.Classes < 1 || m.Classes > largestClasses, "classes is %d", m.Classes)
	fault(len(m.ClassNames) > m.Classes, "%d class names for %d classes", len(m.ClassNames), m.Classes)
	fault(!finite(m.Scale) || m.Scale == 0 || !finite(m.Offset), "scale is %g and offset %g", m.Scale, m.Offset)
	fault(m.Duplicates < 0 || m.Duplicates > max(0, m.Test.Rows), "duplicates is %d of %d rows", m.Duplicates, m.Test.Rows)
	fault(m.Train.Rows < 1, "train.rows is %d", m.Train.Rows)
	fault(len(m.Targets) > 0 && len(m.Targets) != m.Classes, "%d targets and classes is %d", len(m.Targets), m.Classes)
	if why := targetsFault(m.Targets); why != "" {
		fault(true, "%s", why)
	}
	sample := len(m.Sample) == 3 && bounded(m.Sample, largestSample)
	if m.DType == sparseType || m.Sparse != nil {
		sample = m.sparseFaults(fault)
	}
	fault(!sample, "sample is %v, not [channels height width]", m.Sample[:min(len(m.Sample), 4)])
	if sample && len(list) == 0 { // the sizes of chunks follow from these
		list = append(m.partFaults("train", &m.Train), m.partFaults("test", &m.Test)...)
	}
	return list
}

// partFaults compares a part's chunks with its other numbers.
func (m *Manifest) partFaults(part string, p *Part) (list []string) {
	if p.Rows < 0 || p.Rows > largestPart {
		return []string{fmt.Sprintf("%s.rows is %d", part, p.Rows)}
	}
	rows := 0
	for i, c := range p.Chunks {
		switch minimum := m.chunkSize(c); {
		case c.Key != chunkKey(m.Name, part, i):
			list = append(list, fmt.Sprintf("chunk %d of %s is %.120q, not %s", i, part, c.Key, chunkKey(m.Name, part, i)))
		case c.Rows < 1 || c.Rows > p.Rows-rows:
			list = append(list, fmt.Sprintf("%s has %d rows, and %d of the %s part's %d are left", c.Key, c.Rows, p.Rows-rows,
				part, p.Rows))
			return list
		case c.Size < minimum || c.Size > minimum+largestHeader:
			list = append(list, fmt.Sprintf("%s has %d bytes, and %d rows take about %d", c.Key, c.Size, c.Rows, minimum))
		case !sumForm().MatchString(c.Checksum):
			list = append(list, fmt.Sprintf("%s has checksum %.80q", c.Key, c.Checksum))
		}
		rows += c.Rows
	}
	if rows != p.Rows {
		list = append(list, fmt.Sprintf("%s.rows is %d, and its chunks have %d", part, p.Rows, rows))
	}
	return list
}

// chunkSize is the size of the values and labels of a chunk's rows, limited for invalid numbers.
func (m *Manifest) chunkSize(c Chunk) disdel.Bytes {
	if m.Sparse != nil {
		return m.sparseChunkSize(c)
	}
	rows := c.Rows
	row := m.SampleSize() + m.labelSize()
	if rows < 0 || rows > largestPart || float64(rows)*float64(row) > 1<<60 {
		return 1 << 60
	}
	return disdel.Bytes(rows) * row
}

// labelSize is the stored size of a dense row's class or targets.
func (m *Manifest) labelSize() disdel.Bytes { return disdel.Bytes(4 * max(1, len(m.Targets))) }

func chunkKey(name, part string, i int) string {
	return fmt.Sprintf("%s/%s-%05d.safetensors", name, part, i)
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// bounded tells whether every side is at least 1 and their product at most most.
func bounded(sides []int, maximum int) bool {
	n := 1
	for _, v := range sides {
		if v < 1 || v > maximum/n {
			return false
		}
		n *= v
	}
	return true
}

// checkSplit refuses invalid shares: a split comes with a request.
func checkSplit(s disdel.Split) error {
	if s.Train >= 0 && s.Train <= 1 && s.Validation >= 0 && s.Validation <= 1 {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "divide data set", Msg: fmt.Sprintf("a split of %g and %g", s.Train, s.Validation),
		Hint: "data.split.train and data.split.validation are shares from 0 to 1",
	}
}

// checkLabels refuses labels of a chunk without a class, and targets that are not finite.
func (m *Manifest) checkLabels(y []byte) error {
	if n := len(m.Targets); n > 0 {
		for i, v := range floatsOf(nil, y) {
			if !finite(v) {
				return fmt.Errorf("the target %s of its row %d is %g", m.Targets[i%n].Name, i/n, v)
			}
		}
		return nil
	}
	for i := 0; i+4 <= len(y); i += 4 {
		v := uint32(y[i]) | uint32(y[i+1])<<8 | uint32(y[i+2])<<16 | uint32(y[i+3])<<24
		if uint64(v) >= uint64(m.Classes) {
			return fmt.Errorf("the label of its row %d is %d, and there are %d classes", i/4, int32(v), m.Classes)
		}
	}
	return nil
}

// unfilled is the error of a shard whose chunks have fewer rows than the manifest says.
func unfilled(name string, got, want int) error {
	if got == want {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read data set " + name,
		Msg: fmt.Sprintf("its chunks hold %d of the %d rows that were asked for", got, want), Hint: rebuildHint(name),
	}
}

// checkSizes compares the existing chunks with the manifest, by their sizes and before memory is allocated for its
// rows.
func (s *Store) checkSizes(ctx context.Context, m *Manifest) error {
	size, err := s.sizes(ctx, m.Name)
	if err != nil {
		return err
	}
	for _, p := range []*Part{&m.Train, &m.Test} {
		for _, c := range p.Chunks {
			n, err := size(c.Key)
			switch {
			case disdel.KindOf(err) == disdel.NotFound:
				return &disdel.Error{
					Kind: disdel.Corrupt, Op: "read chunk " + c.Key, Msg: "it is missing",
					Hint: rebuildHint(m.Name),
				}
			case err != nil:
				return err
			case n != c.Size:
				return &disdel.Error{
					Kind: disdel.Corrupt, Op: "read chunk " + c.Key, Hint: rebuildHint(m.Name),
					Msg: fmt.Sprintf("it has %d bytes, and the manifest says %d: its checksum is not the manifest's", n, c.Size),
				}
			}
		}
	}
	return nil
}

// sizes returns the sizes of a data set's keys. For a folder it reads each, so that links to another disk are
// followed; elsewhere one listing is cheaper.
func (s *Store) sizes(ctx context.Context, name string) (func(key string) (disdel.Bytes, error), error) {
	if s.folder != "" {
		return func(key string) (disdel.Bytes, error) {
			size, err := s.bucket.Size(ctx, key)
			return disdel.Bytes(size), blobs.Wrap(err, "read chunk", key)
		}, nil
	}
	there := map[string]disdel.Bytes{}
	for obj, err := range s.bucket.List(ctx, name+"/") {
		if err != nil {
			return nil, blobs.Wrap(err, "list data set", name)
		}
		there[obj.Key] = disdel.Bytes(obj.Size)
	}
	return func(key string) (disdel.Bytes, error) {
		if n, ok := there[key]; ok {
			return n, nil
		}
		return 0, &disdel.Error{Kind: disdel.NotFound, Op: "read chunk", Msg: key}
	}, nil
}
