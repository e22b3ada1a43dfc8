package disdel_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/disdel/disdel"
)

// An adjustment's values are numbers with units, and JSON has them as a job file says them, as the first version wrote.
func TestAdjustmentsCarryTypedValuesInTheTextOfAJobFile(t *testing.T) {
	for _, c := range []struct {
		field    disdel.Field
		from, to disdel.Quantity
		text     string
	}{
		{
			disdel.FieldMemory,
			disdel.Quantity{Memory: 58 * disdel.MB},
			disdel.Quantity{Memory: 73 * disdel.MB},
			`"from":"58MB","to":"73MB"`,
		},
		{disdel.FieldTimeout, disdel.Quantity{Time: 3e9}, disdel.Quantity{Time: 90e9}, `"from":"3s","to":"1m30s"`},
		{disdel.FieldBatchSize, disdel.Quantity{Count: 64}, disdel.Quantity{Count: 32}, `"from":"64","to":"32"`},
	} {
		text := `{"invocation":"round 0/train/1","cause":"outOfMemory","field":"` + string(c.field) + `",` + c.text +
			`,"why":"w"}`
		var a disdel.Adjustment
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		if a.From != c.from || a.To != c.to || a.Task != disdel.TaskTrain {
			t.Errorf("%s is %+v", text, a)
		}
		again, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var b disdel.Adjustment
		if err := json.Unmarshal(again, &b); err != nil || a != b {
			t.Errorf("%s is read as %+v, %v", again, b, err)
		}
	}
	var a disdel.Adjustment
	if err := json.Unmarshal([]byte(`{"invocation":"round 0/aggregate level 1/0","from":"1","to":"2"}`), &a); err != nil ||
		a.Task != disdel.TaskAggregate {
		t.Errorf("%+v, %v", a, err)
	}
	if err := json.Unmarshal([]byte(`{"from":"much"}`), &a); !errors.Is(err, disdel.Invalid) {
		t.Errorf("a word for a number: %v", err)
	}
}

// What is decided by crosses the action border, whatever the message says.
func TestAnErrorKeepsItsCodeAndSubject(t *testing.T) {
	in := &disdel.Error{
		Kind: disdel.Corrupt, Code: disdel.CodeLostUpdate, Subject: &disdel.UpdateID{Job: "j", Round: 3, Level: 1, Member: 2},
		Invocation: "round 3/aggregate level 1/2", NotRetried: "no retries", Msg: "m",
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out disdel.Error
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Code != in.Code || *out.Subject != *in.Subject || out.Invocation != in.Invocation ||
		out.NotRetried != in.NotRetried {
		t.Errorf("%s is read as %+v", data, out)
	}
}
