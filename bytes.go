package disdel

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory or data. In JSON it is an integer number of bytes.
type Bytes int64

// Binary multiples. OpenWhisk's "MB" is 2^20 bytes, and so is ours.
const (
	KB Bytes = 1 << 10
	MB Bytes = 1 << 20
	GB Bytes = 1 << 30
)

// MB returns b in whole 2^20-byte megabytes, rounded up: the unit in which OpenWhisk takes memory limits.
func (b Bytes) MB() int {
	return int((b + MB - 1) / MB)
}

// Gigabytes returns b in 2^30-byte gigabytes: the unit of GB-s.
func (b Bytes) Gigabytes() float64 { return float64(b) / float64(GB) }

// String prints three significant digits with a binary unit, such as "91.4 MB".
func (b Bytes) String() string {
	switch v := float64(b); {
	case b < 0:
		return "-" + (-max(b, -math.MaxInt64)).String() // the smallest int64 has no negative
	case b < KB:
		return fmt.Sprintf("%d B", int64(b))
	case b < MB:
		return threeDigits(v/float64(KB)) + " KB"
	case b < GB:
		return threeDigits(v/float64(MB)) + " MB"
	default:
		return threeDigits(v/float64(GB)) + " GB"
	}
}

// Beside prints b as String does, with as many more digits as it takes to tell it from other: what is too much must not
// read as just enough.
func (b Bytes) Beside(other Bytes) string {
	if b == other || b.String() != other.String() {
		return b.String()
	}
	unit, name := GB, " GB"
	switch {
	case b < MB:
		return fmt.Sprintf("%d B", int64(b))
	case b < GB:
		unit, name = MB, " MB"
	}
	for digits := 1; digits < 9; digits++ {
		mine := strconv.FormatFloat(float64(b)/float64(unit), 'f', digits, 64)
		if mine != strconv.FormatFloat(float64(other)/float64(unit), 'f', digits, 64) {
			return mine + name
		}
	}
	return fmt.Sprintf("%d B", int64(b))
}

func threeDigits(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
}

// ParseBytes reads "512MB", "512 Mi", "1.5GB" or a plain integer of megabytes, as OpenWhisk's tools do.
// MB and Mi (GB and Gi, KB and Ki) mean the same power of two. It returns an Invalid error otherwise.
func ParseBytes(s string) (Bytes, error) {
	text := strings.TrimSpace(s)
	digits := strings.TrimRight(text, "KMGiBkmgb ")
	unit := strings.ToUpper(strings.TrimSpace(text[len(digits):]))
	scale, ok := map[string]Bytes{
		"": MB, "B": 1, "K": KB, "KB": KB, "KI": KB, "KIB": KB,
		"M": MB, "MB": MB, "MI": MB, "MIB": MB, "G": GB, "GB": GB, "GI": GB, "GIB": GB,
	}[unit]
	v, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || v < 0 || math.IsNaN(v) || v*float64(scale) > math.MaxInt64/2 {
		return 0, &Error{
			Kind: Invalid, Op: "parse memory size", Msg: fmt.Sprintf("%q is not a size", s),
			Hint: "write a number and a unit, such as 512MB or 1.5Gi",
		}
	}
	return Bytes(math.Round(v * float64(scale))), nil
}

// UnmarshalJSON takes an integer number of bytes or a string that ParseBytes reads.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var n int64
	if err := json.Unmarshal(data, &n); err == nil {
		*b = Bytes(n)
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return &Error{Kind: Invalid, Op: "parse memory size", Msg: fmt.Sprintf("%s is not a size", data)}
	}
	v, err := ParseBytes(s)
	*b = v
	return err
}
