package dataset

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/disdel/disdel"
)

// ReadCSV reads rows of numbers whose last column is the label, a whole number from 0; shape is the shape of the
// others. It returns Corrupt with line and column of the first value that is none, or of a row of another length.
// Values that are all whole numbers from 0 to 255 are kept in a byte each.
func ReadCSV(r io.Reader, shape []int) (Samples, error) {
	n := 1
	for _, v := range shape {
		n *= v
	}
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.ReuseRecord = -1, true
	s, bytes := Samples{Shape: shape}, true
	for line := 1; ; line++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, &disdel.Error{Kind: disdel.Corrupt, Op: "read CSV", Err: err}
		}
		if len(record) != n+1 {
			return s, damaged("CSV", "line %d has %d columns, and shape %v and a label need %d", line, len(record), shape, n+1)
		}
		for i, text := range record[:n] {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return s, damaged("CSV", "line %d, column %d: %q is no number", line, i+1, text)
			}
			bytes = bytes && v >= 0 && v <= 255 && v == math.Trunc(v)
			s.F32 = append(s.F32, float32(v))
		}
		y, err := strconv.ParseFloat(record[n], 64)
		if err != nil || y < 0 || y > math.MaxInt16 || y != math.Trunc(y) {
			return s, damaged("CSV", "line %d: label %q is no whole number from 0", line, record[n])
		}
		s.Labels = append(s.Labels, int32(y))
	}
	if bytes {
		s.toBytes()
	}
	return s, nil
}

func (x *Samples) toBytes() {
	x.U8 = make([]byte, len(x.F32))
	for i, v := range x.F32 {
		x.U8[i] = byte(v)
	}
	x.F32 = nil
}
