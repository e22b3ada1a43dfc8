package disdel

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Sync says when the workers' weights are averaged: "epoch", "end" or "every K" batches. In JSON and YAML the last one
// is an object, {every: K}.
type Sync string

// The modes of Sync without a number; Every makes the other.
const (
	SyncEpoch Sync = "epoch" // after every epoch
	SyncEnd   Sync = "end"   // once, after the last epoch (DiSDeL's one-shot averaging)
)

const everyPrefix = "every "

// SyncEvery is the mode that averages after every k batches and at the end of every epoch (KubeML's K-AVG).
func SyncEvery(k int) Sync { return Sync(everyPrefix + strconv.Itoa(k)) }

// Every is K of "every K", 0 for the other modes.
func (s Sync) Every() int {
	text, ok := strings.CutPrefix(string(s), everyPrefix)
	k, err := strconv.Atoi(text)
	if !ok || err != nil || k < 1 {
		return 0
	}
	return k
}

// MarshalJSON writes a word, or {"every": K}.
func (s Sync) MarshalJSON() ([]byte, error) {
	if k := s.Every(); k > 0 {
		return json.Marshal(map[string]int{"every": k})
	}
	return json.Marshal(string(s))
}

// UnmarshalJSON reads what MarshalJSON wrote. It returns an Invalid error otherwise.
func (s *Sync) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		*s = Sync(word)
		return nil
	}
	var object map[string]int
	if err := json.Unmarshal(data, &object); err != nil || len(object) != 1 || object["every"] < 1 {
		return &Error{
			Kind: Invalid, Op: "parse sync", Msg: fmt.Sprintf("%s is no sync", data),
			Hint: "write epoch, end or {every: K}",
		}
	}
	*s = SyncEvery(object["every"])
	return nil
}
