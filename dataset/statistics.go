package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/disdel/disdel"
)

// Statistics describes the training rows of a data set.
type Statistics struct {
	Rows    int         `json:"rows"`              // for training
	HeldOut int         `json:"heldOut"`           // rows of a held-out part; no other field counts them
	Classes []ClassRows `json:"classes,omitempty"` // nil: rows have targets or next tokens, or there are too many

	Columns  []ValueStatistics `json:"columns,omitempty"`  // of a table
	Channels []ValueStatistics `json:"channels,omitempty"` // of images and arrays: as a network gets them
	Targets  []ValueStatistics `json:"targets,omitempty"`  // in their units
}

// ValueStatistics describes the values of a column, a channel or a target.
type ValueStatistics struct {
	Name      string     `json:"name"`
	Kind      ColumnKind `json:"kind"`              // number, category or target
	Missing   int        `json:"missing,omitempty"` // rows without a value; the other fields do not count them
	Low       float64    `json:"low"`               // least value
	High      float64    `json:"high"`              // greatest value
	Mean      float64    `json:"mean"`
	Deviation float64    `json:"deviation"` // of the population: divided by the number of values
	// Histogram has the number of values in ten ranges of the same width, from Low to High. Ranges of 8-bit images go from
	// the least possible value to the greatest one.
	Histogram  []int       `json:"histogram,omitempty"`
	Categories []ClassRows `json:"categories,omitempty"` // of a category: its texts and their rows

	from, to float64 // range of the histogram
	values   int
	squares  float64 // sum of squared distances from the mean (Welford 1962)
}

// histogramRanges is the number of ranges of a histogram.
const histogramRanges = 10

// Statistics reads all training rows of a data set, one chunk at a time, and describes them. Arrays of floats are read
// twice. It returns NotFound, Corrupt for damaged rows, and Invalid for sparse rows.
func (s *Store) Statistics(ctx context.Context, name string) (out Statistics, err error) {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return out, err
	}
	if m.Sparse != nil {
		return out, &disdel.Error{
			Kind: disdel.Invalid, Op: "describe data set " + name,
			Msg:  "its rows are sparse, and only dense rows have statistics",
			Hint: "disdel dataset show " + name + " prints the entries and targets of sparse rows",
		}
	}
	if err := s.checkSizes(ctx, &m); err != nil {
		return out, err
	}
	out = m.emptyStatistics()
	if len(out.Channels) > 0 {
		if m.DType == "U8" {
			out.boundBytes(&m)
		} else if err := s.eachTrainRow(ctx, m, func(x []float32, _ *Shard) { out.bound(x) }); err != nil {
			return out, err
		}
	}
	err = s.eachTrainRow(ctx, m, func(x []float32, row *Shard) {
		out.addLabel(&m, row)
		out.addColumns(&m, x)
		out.addChannels(x)
	})
	out.close()
	return out, err
}

// eachTrainRow calls do with the scaled values of each training row, and with the row itself.
func (s *Store) eachTrainRow(ctx context.Context, m Manifest, do func(x []float32, row *Shard)) error {
	read, row, x := chunkReader{s: s, m: m}, m.shard(1), make([]float32, m.SampleLen())
	for _, c := range m.Train.Chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk, err := read.next(ctx, c)
		if err != nil {
			return err
		}
		for r := range c.Rows {
			chunk.copyRow(r, row, 0)
			row.scaled(x, 0)
			do(x, row)
		}
	}
	return nil
}

// emptyStatistics has everything that the manifest knows, and no values.
func (m *Manifest) emptyStatistics() Statistics {
	out := Statistics{Rows: m.Train.Rows, HeldOut: m.Test.Rows}
	for k := range m.Columns {
		c := &m.Columns[k]
		v := ValueStatistics{
			Name: c.Name, Kind: c.Kind, Missing: c.Missing, Low: c.Low, High: c.High, Mean: c.Mean, Deviation: c.Deviation,
			from: c.Low, to: c.High,
		}
		for _, text := range c.Categories {
			v.Categories = append(v.Categories, ClassRows{Name: text})
		}
		if c.Kind == ColumnNumber {
			v.Histogram = make([]int, histogramRanges)
			v.count(c.number(float32((c.Mean-c.Shift)*c.Factor)), -c.Missing) // rows store a missing value as the mean
		}
		out.Columns = append(out.Columns, v)
	}
	for _, t := range m.Targets {
		out.Targets = append(out.Targets, ValueStatistics{
			Name: t.Name, Kind: ColumnTarget, Low: t.Low, High: t.High, Mean: t.Mean, Deviation: t.Deviation,
			from: t.Low, to: t.High, Histogram: make([]int, histogramRanges),
		})
	}
	if len(m.Targets) == 0 && !m.NextToken && m.Classes <= mostClasses {
		for k := range m.Classes {
			out.Classes = append(out.Classes, ClassRows{Name: m.className(k)})
		}
	}
	if len(m.Columns) == 0 && m.Tokenizer == "" { // a mean of token numbers says nothing
		for k := range m.Sample[0] {
			out.Channels = append(out.Channels, ValueStatistics{
				Name: fmt.Sprintf("channel %d", k), Kind: ColumnNumber, Low: math.Inf(1), High: math.Inf(-1),
				from: math.Inf(1), to: math.Inf(-1), Histogram: make([]int, histogramRanges),
			})
		}
	}
	return out
}

// className is the name of a class, or its number if it has none.
func (m *Manifest) className(k int) string {
	if k < len(m.ClassNames) {
		return m.ClassNames[k]
	}
	return fmt.Sprint(k)
}

// boundBytes sets the ranges of the histograms to the possible values of a byte.
func (t *Statistics) boundBytes(m *Manifest) {
	low, high := float64(m.Offset), float64(255*m.Scale+m.Offset)
	for k := range t.Channels {
		t.Channels[k].from, t.Channels[k].to = min(low, high), max(low, high)
	}
}

// bound widens the ranges of the histograms to the values of a row.
func (t *Statistics) bound(x []float32) {
	n := len(x) / len(t.Channels)
	for k := range t.Channels {
		c := &t.Channels[k]
		for _, v := range x[k*n : (k+1)*n] {
			c.from, c.to = min(c.from, float64(v)), max(c.to, float64(v))
		}
	}
}

// addLabel counts the class or the targets of a row.
func (t *Statistics) addLabel(m *Manifest, row *Shard) {
	if t.Classes != nil {
		t.Classes[row.labels[0]].Rows++
	}
	for k := range t.Targets {
		s := &t.Targets[k]
		s.count(m.Targets[k].Value(row.targets[k]), 1)
		if m.Targets[k].Label { // its own mean and deviation are 0 and 1: it is learned as it is
			rows := 0
			for _, n := range s.Histogram {
				rows += n
			}
			s.Mean = float64(s.Histogram[len(s.Histogram)-1]) / float64(rows)
			s.Deviation = math.Sqrt(s.Mean * (1 - s.Mean))
		}
	}
}

// addColumns counts the values of a table's row. A row without a category has no 1 among its values.
func (t *Statistics) addColumns(m *Manifest, x []float32) {
	for k := range m.Columns {
		c, v := &m.Columns[k], &t.Columns[k]
		if c.Kind == ColumnNumber {
			v.count(c.number((x[0]-m.Offset)/m.Scale), 1)
		} else {
			for i := range v.Categories {
				if x[i] != 0 {
					v.Categories[i].Rows++
				}
			}
		}
		x = x[c.Width():]
	}
}

// number turns a stored value of a column back into a number of its file, up to rounding.
func (c *Column) number(v float32) float64 {
	if c.Factor == 0 {
		return float64(v)
	}
	return float64(v)/c.Factor + c.Shift
}

// addChannels counts the values of each channel.
func (t *Statistics) addChannels(x []float32) {
	for k := range t.Channels {
		c, n := &t.Channels[k], len(x)/len(t.Channels)
		for _, v := range x[k*n : (k+1)*n] {
			c.add(float64(v))
		}
	}
}

// add counts a value, and updates the mean and the deviation.
func (v *ValueStatistics) add(x float64) {
	v.count(x, 1)
	v.values++
	off := x - v.Mean
	v.Mean += off / float64(v.values)
	v.squares += off * (x - v.Mean)
	v.Low, v.High = min(v.Low, x), max(v.High, x)
}

// count adds n values to the histogram. Values that rounding moved out of the range belong to the outer ranges.
func (v *ValueStatistics) count(x float64, n int) {
	at := 0
	if v.to > v.from {
		at = int((x - v.from) / (v.to - v.from) * histogramRanges)
	}
	v.Histogram[max(0, min(at, histogramRanges-1))] += n
}

// close completes the deviations of channels.
func (t *Statistics) close() {
	for k := range t.Channels {
		if c := &t.Channels[k]; c.values > 0 {
			c.Deviation = math.Sqrt(c.squares / float64(c.values))
		}
	}
}

// ClassRows reads all training rows of a data set, and counts those of each class. It returns NotFound, Corrupt for
// damaged rows, and Invalid for rows without classes.
func (s *Store) ClassRows(ctx context.Context, name string) ([]int, error) {
	m, err := s.Manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	if m.Sparse != nil || len(m.Targets) > 0 || m.NextToken {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "count rows of " + name, Msg: "its rows have no classes"}
	}
	if err := s.checkSizes(ctx, &m); err != nil {
		return nil, err
	}
	rows, read := make([]int, m.Classes), chunkReader{s: s, m: m}
	for _, c := range m.Train.Chunks {
		chunk, err := read.next(ctx, c)
		if err != nil {
			return nil, err
		}
		for r := range c.Rows {
			rows[binary.LittleEndian.Uint32(chunk.y[4*r:])]++
		}
	}
	return rows, nil
}
