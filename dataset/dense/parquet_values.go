package dense

import (
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// parquetColumn reads the values of a column as texts.
type parquetColumn struct {
	name string
	text func(parquet.Value) string
	// numbers reads the values of a page in order, without texts; nil: texts are needed. Values of a dictionary have
	// indexes.
	numbers func(values encoding.Values, indexes []int32) func(into []float64)
	spell   func(v float64) string // the text of such a number

	booleans, optional bool // it has booleans, and they may be missing
}

// numbersOf sets how numbers are read without texts, for the kinds where that is the same.
func (c *parquetColumn) numbersOf(from *parquet.Column, element *format.SchemaElement) {
	logical := from.Type().LogicalType()
	if logical == nil {
		logical = &element.LogicalType
	}
	integer, _ := logical.Value.(*format.IntType)
	if logical.Value != nil && integer == nil {
		return
	}
	unsigned := integer != nil && !integer.IsSigned
	whole := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch kind := from.Type().Kind(); {
	case kind == parquet.Int32 && unsigned:
		c.numbers, c.spell = inTurn((*encoding.Values).Uint32), whole
	case kind == parquet.Int64 && unsigned:
		c.numbers, c.spell = inTurn((*encoding.Values).Uint64), whole
	case kind == parquet.Int32:
		c.numbers, c.spell = inTurn((*encoding.Values).Int32), whole
	case kind == parquet.Int64:
		c.numbers, c.spell = inTurn((*encoding.Values).Int64), whole
	case kind == parquet.Float:
		c.numbers = inTurn((*encoding.Values).Float)
		c.spell = func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }
	case kind == parquet.Double:
		c.numbers = inTurn((*encoding.Values).Double)
		c.spell = func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	}
}

// inTurn returns a reader of pages of one type.
func inTurn[T int32 | uint32 | int64 | uint64 | float32 | float64](typed func(*encoding.Values) []T) func(
	values encoding.Values, indexes []int32) func(into []float64) {
	return func(page encoding.Values, indexes []int32) func(into []float64) {
		values := typed(&page)
		if indexes == nil {
			return func(into []float64) {
				for k, v := range values[:len(into)] {
					into[k] = float64(v)
				}
				values = values[len(into):]
			}
		}
		return func(into []float64) {
			for k, at := range indexes[:len(into)] {
				into[k] = float64(values[at])
			}
			indexes = indexes[len(into):]
		}
	}
}

// isExact tells whether each number of a row group's column is a different float64. Otherwise texts are needed.
func (c *parquetColumn) isExact(chunk parquet.ColumnChunk) bool {
	if chunk.Type().Kind() != parquet.Int64 {
		return true
	}
	known, ok := chunk.(interface {
		Bounds() (low, high parquet.Value, ok bool)
	})
	if !ok {
		return false
	}
	low, high, ok := known.Bounds()
	if !ok {
		return false
	}
	bounds := make([]float64, 2)
	c.numbers(encoding.Int64Values([]int64{low.Int64(), high.Int64()}), nil)(bounds)
	return -exactIntegers < bounds[0] && bounds[1] < exactIntegers
}

// textOf returns how values of a column become texts; why is set for a type that no table can have.
func textOf(c *parquet.Column, element *format.SchemaElement) (text func(parquet.Value) string, why string) {
	logical := c.Type().LogicalType()
	if logical == nil {
		logical = &element.LogicalType
	}
	kind := c.Type().Kind()
	switch l := logical.Value.(type) {
	case *format.DateType:
		return func(v parquet.Value) string {
			return time.Unix(int64(v.Int32())*secondsOfDay, 0).UTC().Format(time.DateOnly)
		}, ""
	case *format.TimestampType:
		return timestampText(l), ""
	case *format.TimeType:
		return timeText(l, kind), ""
	case *format.DecimalType:
		return decimalText(l, kind)
	case *format.IntType:
		if !l.IsSigned && kind == parquet.Int32 {
			return func(v parquet.Value) string { return strconv.FormatUint(uint64(v.Uint32()), 10) }, ""
		}
		if !l.IsSigned {
			return func(v parquet.Value) string { return strconv.FormatUint(v.Uint64(), 10) }, ""
		}
	case *format.UUIDType:
		return uuidText, ""
	case *format.Float16Type:
		return func(v parquet.Value) string {
			b := v.ByteArray()
			if len(b) != 2 {
				return ""
			}
			return strconv.FormatFloat(half(uint16(b[0])|uint16(b[1])<<8), 'g', -1, 32)
		}, ""
	case *format.NullType:
		return func(parquet.Value) string { return "" }, ""
	case nil, *format.StringType, *format.EnumType, *format.JsonType:
	default:
		return nil, "values of the type " + logical.String() + " are no texts or numbers"
	}
	return plainText(kind)
}

// plainText returns how values without a further meaning become texts.
func plainText(kind parquet.Kind) (text func(parquet.Value) string, why string) {
	switch kind {
	case parquet.Boolean:
		return func(v parquet.Value) string { return strconv.FormatBool(v.Boolean()) }, ""
	case parquet.Int32:
		return func(v parquet.Value) string { return strconv.Itoa(int(v.Int32())) }, ""
	case parquet.Int64:
		return func(v parquet.Value) string { return strconv.FormatInt(v.Int64(), 10) }, ""
	case parquet.Int96:
		return func(v parquet.Value) string { return int96Text(v.Int96()) }, ""
	case parquet.Float:
		return func(v parquet.Value) string { return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32) }, ""
	case parquet.Double:
		return func(v parquet.Value) string { return strconv.FormatFloat(v.Double(), 'g', -1, 64) }, ""
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return func(v parquet.Value) string { return string(v.ByteArray()) }, ""
	default:
		return nil, "values of the type " + kind.String() + " are no texts or numbers"
	}
}

const secondsOfDay = 24 * 60 * 60

// timestampText returns ISO texts, such as 2024-02-29T12:30:00Z; without the Z for local times.
func timestampText(t *format.TimestampType) func(parquet.Value) string {
	form := "2006-01-02T15:04:05.999999999"
	if t.IsAdjustedToUTC {
		form += "Z"
	}
	unit := int64(time.Nanosecond)
	if t.Unit.Value != nil {
		unit = int64(t.Unit.Value.Duration())
	}
	perSecond := int64(time.Second) / unit
	return func(v parquet.Value) string {
		n := v.Int64()
		return time.Unix(n/perSecond, n%perSecond*unit).UTC().Format(form)
	}
}

// timeText returns times of day, such as 12:30:00.5.
func timeText(t *format.TimeType, kind parquet.Kind) func(parquet.Value) string {
	unit := int64(time.Nanosecond)
	if t.Unit.Value != nil {
		unit = int64(t.Unit.Value.Duration())
	}
	return func(v parquet.Value) string {
		n := v.Int64()
		if kind == parquet.Int32 {
			n = int64(v.Int32())
		}
		perSecond := int64(time.Second) / unit
		return time.Unix(n/perSecond, n%perSecond*unit).UTC().Format("15:04:05.999999999")
	}
}

// int96Text is a time as early writers stored it: nanoseconds of a day, and the Julian day.
func int96Text(v deprecated.Int96) string {
	const unixEpoch = 2440588 // its Julian day
	day, nanoseconds := int64(v[2])-unixEpoch, int64(uint64(v[1])<<32|uint64(v[0]))
	return time.Unix(day*secondsOfDay, 0).UTC().Add(time.Duration(nanoseconds)).Format("2006-01-02T15:04:05.999999999")
}

// mostDigits is the most digits of a decimal number: 32 bytes have fewer.
const mostDigits = 77

// decimalText returns decimal numbers with all their digits.
func decimalText(t *format.DecimalType, kind parquet.Kind) (text func(parquet.Value) string, why string) {
	scale := int(t.Scale)
	if scale < 0 || scale > mostDigits {
		return nil, "values of the type " + t.String() + " are no decimal numbers"
	}
	return func(v parquet.Value) string {
		switch kind {
		case parquet.Int32:
			return pointed(strconv.Itoa(int(v.Int32())), scale)
		case parquet.Int64:
			return pointed(strconv.FormatInt(v.Int64(), 10), scale)
		default:
			bytes := v.ByteArray()
			n := new(big.Int).SetBytes(bytes)
			if len(bytes) > 0 && bytes[0] >= 1<<7 { // negative, as two's complement
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
			}
			return pointed(n.String(), scale)
		}
	}, ""
}

// pointed sets the decimal point of a whole number.
func pointed(digits string, scale int) string {
	if scale == 0 {
		return digits
	}
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

func uuidText(v parquet.Value) string {
	b := hex.EncodeToString(v.ByteArray())
	if len(b) != 32 {
		return b
	}
	return b[:8] + "-" + b[8:12] + "-" + b[12:16] + "-" + b[16:20] + "-" + b[20:]
}
