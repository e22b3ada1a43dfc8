package disdel

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
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

// ParseCost reads "50GB-s", "2.5 GB-s" or a plain number of GB-s. It returns an Invalid error otherwise, also for a
// negative cost.
func ParseCost(s string) (float64, error) {
	amount := strings.TrimSpace(s)
	if digits, ok := strings.CutSuffix(amount, "GB-s"); ok {
		amount = strings.TrimRight(digits, " ")
	}
	v, err := strconv.ParseFloat(amount, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) || strings.ContainsAny(amount, "xXpP_") {
		return 0, &Error{
			Kind: Invalid, Op: "parse cost", Msg: fmt.Sprintf("%q is not a cost", s),
			Hint: "write a number and the unit GB-s, such as 50GB-s",
		}
	}
	return v, nil
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

// JobID names one submitted job: "job-" and a lower-case ULID, so that ids sort by time.
type JobID string

// jobIDLength is that of "job-" and a ULID.
const jobIDLength = 4 + 26

// Valid tells whether an id is one that a job can have. It is part of keys, paths and commands.
func (id JobID) Valid() bool {
	if len(id) != jobIDLength || id[:4] != "job-" {
		return false
	}
	for _, c := range []byte(id[4:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// ActivationID is OpenWhisk's id of an activation: 32 lower-case hex digits.
type ActivationID string

// ActionName names an OpenWhisk action inside the caller's namespace: "package/action".
type ActionName string

// Task says what an action does; it is the `main` of the OpenWhisk action.
type Task string

// The tasks of the action image.
const (
	TaskTrain     Task = "train"
	TaskAggregate Task = "aggregate"
	TaskEvaluate  Task = "evaluate"
	TaskInfer     Task = "infer"
	TaskProbe     Task = "probe" // looks at its own container; no job has one
)

// RuntimeKind is the OpenWhisk kind of disdel's own action runtime: the embedded platform starts this binary for it.
const RuntimeKind = "disdel:1"

// UpdateID names one update on the wire. It is derived from the plan, never random, so that a second delivery of the
// same work is recognised.
type UpdateID struct {
	Job    JobID `json:"job"`
	Round  int   `json:"round"`  // 0-based
	Level  int   `json:"level"`  // 0: pushed by a worker; 1 and up: pushed by an aggregation action
	Member int   `json:"member"` // worker at level 0, cluster above
}

func (u UpdateID) String() string {
	return fmt.Sprintf("%s/round %d/level %d/%d", u.Job, u.Round, u.Level, u.Member)
}

// Duration is a time.Duration that reads and writes Go's syntax: "90s", "5m".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes Go's duration syntax.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads Go's duration syntax. It returns an Invalid error otherwise.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return &Error{
			Kind: Invalid, Op: "parse duration", Msg: "\"" + string(text) + "\" is not a duration",
			Hint: "write 90s, 5m or 1h30m",
		}
	}
	*d = Duration(v)
	return nil
}

// Millis is a time.Duration that JSON carries as whole milliseconds, under names that end in Ms.
type Millis time.Duration

func (m Millis) String() string { return time.Duration(m).Round(time.Millisecond).String() }

// Readable makes a time that is easy to read, never a shorter one.
func (m Millis) Readable() Millis {
	step := time.Minute
	for _, s := range []struct{ below, step time.Duration }{
		{20 * time.Second, time.Second}, {2 * time.Minute, 5 * time.Second}, {10 * time.Minute, 30 * time.Second},
	} {
		if time.Duration(m) <= s.below {
			step = s.step
			break
		}
	}
	return Millis((time.Duration(m) + step - 1) / step * step)
}

// Text prints a duration for reading: "44.0 s", "12m5s".
func (m Millis) Text() string {
	d := time.Duration(m)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Seconds is the duration in seconds.
func (m Millis) Seconds() float64 { return time.Duration(m).Seconds() }

// MarshalJSON writes milliseconds, rounded to the nearest.
func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(m).Round(time.Millisecond).Milliseconds())
}

// UnmarshalJSON reads milliseconds.
func (m *Millis) UnmarshalJSON(data []byte) error {
	var ms int64
	if err := json.Unmarshal(data, &ms); err != nil {
		return err
	}
	*m = Millis(time.Duration(ms) * time.Millisecond)
	return nil
}

// Counted prints "1 round", "2 rounds".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
