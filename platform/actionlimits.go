package platform

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

type limits struct {
	Timeout     int  `json:"timeout"` // ms
	Memory      int  `json:"memory"`  // MB
	Logs        int  `json:"logs"`    // MB
	Concurrency int  `json:"concurrency"`
	Instances   *int `json:"instances,omitempty"`
}

// limitsPut is the limits of a request; what is missing stays.
type limitsPut struct{ Timeout, Memory, Logs, Concurrency, Instances *int }

// UnmarshalJSON reads limits with OpenWhisk's words for those that are none.
func (l *limitsPut) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return wrong("Object expected in field 'timeout'")
	}
	for _, f := range []struct {
		name, noun string
		to         **int
	}{
		{"timeout", "time", &l.Timeout},
		{"memory", "memory", &l.Memory},
		{"logs", "log", &l.Logs},
		{"concurrency", "concurrency", &l.Concurrency},
		{"instances", "instances", &l.Instances},
	} {
		text := fields[f.name]
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		var n float64
		switch {
		case json.Unmarshal(text, &n) != nil:
			return wrong(f.noun + " limit malformed")
		case n != math.Trunc(n) || math.Abs(n) > math.MaxInt32:
			return wrong("requirement failed: " + f.noun + " limit must be whole number")
		case n < 0 && (f.name == "logs" || f.name == "memory"):
			return wrong("requirement failed: a negative size of an object is not allowed.")
		}
		*f.to = new(int(n))
	}
	return nil
}

func (b *actionPut) setLimits(l *limits) {
	n := b.Limits
	if n == nil {
		return
	}
	for _, set := range []struct{ to, from *int }{
		{&l.Timeout, n.Timeout},
		{&l.Memory, n.Memory},
		{&l.Logs, n.Logs},
		{&l.Concurrency, n.Concurrency},
	} {
		if set.from != nil {
			*set.to = *set.from
		}
	}
	if n.Instances != nil {
		l.Instances = n.Instances
	}
}

func (l *Limits) checkAction(a *action) error {
	if err := l.checkSize("parameters", a.Parameters); err != nil {
		return err
	}
	given := slices.DeleteFunc(slices.Clone(a.Annotations), func(v keyValue) bool { // by the request
		return v.Key == "exec" || v.Key == "provide-api-key"
	})
	if err := l.checkSize("annotations", given); err != nil {
		return err
	}
	return l.check(a.Limits)
}

// check refuses limits outside the platform's, with the texts of OpenWhisk's Limits classes.
func (l *Limits) check(v limits) error {
	for _, c := range []struct {
		value, low, high int
		above, below     string
	}{
		{
			v.Memory, l.Memory.Min.MB(), l.Memory.Max.MB(), "memory size %d MB exceeds allowed threshold of %d MB",
			"memory size %d MB below allowed threshold of %d MB",
		},
		{
			v.Timeout, int(l.Timeout.Min.Milliseconds()), int(l.Timeout.Max.Milliseconds()),
			"duration %d milliseconds exceeds allowed threshold of %d milliseconds",
			"duration %d milliseconds below allowed threshold of %d milliseconds",
		},
		{
			v.Logs, l.LogsMB.Min, l.LogsMB.Max, "log size %d MB exceeds allowed threshold of %d MB",
			"log size %d MB below allowed threshold of %d MB",
		},
		{
			v.Concurrency, l.Concurrency.Min, l.Concurrency.Max, "concurrency %d exceeds allowed threshold of %d",
			"concurrency %d below allowed threshold of %d",
		},
	} {
		if c.value > c.high {
			return problem{400, "requirement failed: " + fmt.Sprintf(c.above, c.value, c.high)}
		}
		if c.value < c.low {
			return problem{400, "requirement failed: " + fmt.Sprintf(c.below, c.value, c.low)}
		}
	}
	return nil
}
