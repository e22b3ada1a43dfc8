package dense

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// parquetColumn reads the values of a column as texts.
type parquetColumn struct {
	name string
	text func(parquet.Value) string
	// number returns the number that the text of a value is, without the text; nil: texts are needed. ok is false for a
	// value that is no number of a data set.
	number func(parquet.Value) (v float64, ok bool)
	spell  func(v float64) string // the text of such a number below 2^53
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
	whole := func(v float64) string { return strconv.FormatInt(int64(v), 10) }
	switch kind := from.Type().Kind(); {
	case kind == parquet.Int32 && unsigned:
		c.number, c.spell = func(v parquet.Value) (float64, bool) { return float64(v.Uint32()), true }, whole
	case kind == parquet.Int64 && unsigned:
		c.number, c.spell = func(v parquet.Value) (float64, bool) { return float64(v.Uint64()), true }, whole
	case kind == parquet.Int32:
		c.number, c.spell = func(v parquet.Value) (float64, bool) { return float64(v.Int32()), true }, whole
	case kind == parquet.Int64:
		c.number, c.spell = func(v parquet.Value) (float64, bool) { return float64(v.Int64()), true }, whole
	case kind == parquet.Float:
		c.number = func(v parquet.Value) (float64, bool) { return asWritten(v.Float()) }
		c.spell = func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }
	case kind == parquet.Double:
		c.number = func(v parquet.Value) (float64, bool) { return v.Double(), math.Abs(v.Double()) <= math.MaxFloat32 }
		c.spell = func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	}
}

// asWritten is the number that the shortest text of a float32 is: 0.1 for the float32 nearest to it. A table has the
// same numbers in Parquet and as text. ok is false for infinities and what is no number.
func asWritten(f float32) (v float64, ok bool) {
	x := math.Abs(float64(f))
	if x >= 1e-6 && x < 1e7 {
		if v := shortest(x); v > 0 {
			return math.Copysign(v, float64(f)), true
		}
	}
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return float64(f), x == 0
	}
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	return v, err == nil && math.Abs(v) <= math.MaxFloat32
}

// shortest is the decimal with the fewest digits whose nearest float32 is x, from 1e-6 to 1e7. It is a whole number
// below 2^53 over an exact power of ten, so that the quotient is the nearest number. It is 0 where rounding could
// choose another decimal.
func shortest(x float64) float64 {
	bits := math.Float64bits(x)
	if x == float64(int64(x)) {
		return x
	}
	if bits&(1<<52-1) == 0 { // below a power of two, float32s are closer together
		if x >= 1.0/1024 { // all digits are needed
			return x
		}
		return 0
	}
	exponent := bits >> 52
	half := math.Float64frombits((exponent - 24) << 52) // of the distance of float32s
	const leastExponent = 1023 - 20
	places := int(startPlaces[exponent-leastExponent])
	digits, fits := nearestDigits(x, half, places)
	if fits < 0 {
		return 0
	}
	if fits == 0 {
		places++
		if digits, fits = nearestDigits(x, half, places); fits <= 0 {
			return 0
		}
		return digits / wideTens[places]
	}
	for places > 0 {
		fewer, fits := nearestDigits(x, half, places-1)
		if fits < 0 {
			return 0
		}
		if fits == 0 {
			break
		}
		digits, places = fewer, places-1
	}
	return digits / wideTens[places]
}

// nearestDigits is the nearest decimal to x with so many places, without its point. fits is 1 if x is the float32
// nearest to it, 0 if not, and -1 where that is too close to tell.
func nearestDigits(x, half float64, places int) (digits float64, fits int) {
	scaled, distance := x*wideTens[places], half*wideTens[places]
	digits = float64(int64(scaled + 0.5))
	off := math.Abs(scaled - digits)
	const unsure = 1e-6
	switch {
	case off > distance+unsure:
		return digits, 0
	case off < distance-unsure && off < 0.5-unsure:
		return digits, 1
	default:
		return digits, -1
	}
}

// startPlaces is how many places of a decimal are tried first, by the exponent from 2^-20 on: of about 7 digits.
var startPlaces = [...]uint8{
	12, 12, 12, 12, 11, 11, 11, 10, 10, 10, 9, 9, 9, 9, 8, 8, 8, 7, 7, 7, 6, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 3, 3, 2, 2,
	2, 1, 1, 1, 0, 0, 0, 0,
}

// wideTens are the powers of ten that shortest divides by.
var wideTens = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
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
