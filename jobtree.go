package disdel

import (
	"bytes"
	"encoding/json"
)

// Tree is the job as its JSON has it: maps by the names of fields, lists, and values. Numbers are json.Number, so that
// integers above 2^53 stay what they are. It returns nil for a job that JSON cannot hold.
func (j *Job) Tree() any {
	var tree any
	text, err := json.Marshal(j)
	if err != nil {
		return nil
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if in.Decode(&tree) != nil {
		return nil
	}
	return tree
}
