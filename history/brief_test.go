package history

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// briefDocument is a document as disdel writes it, with a part in it.
func briefDocument(part string) []byte {
	const id = "job-01m80104rj3cabn3tetc26z8w3"
	return fmt.Appendf(nil, `{"_id":%q,"_rev":"1-a","id":%[1]q,"apiVersion":"disdel/v1","status":"failed"%s}`, id, part)
}

// What the scanner reads of a document is what encoding/json reads, and what it leaves to encoding/json is read.
func FuzzBriefScan(f *testing.F) {
	for _, part := range []string{
		"", `,"rounds":null`, `,"rounds":[]`, ` , "rounds" : [ { "round" : 3 , "loss" : null , "trainLoss" : -1.5e-3 } ] `,
		`,"rounds":[{"round":1,"left":[{"a":"]}\\\""}],"r2":0.5,"accuracy":0.25,"rmse":3}],"stages":[{"x":["\"",{}]}]`,
		`,"rounds":[{"round":1,"Loss":2}]`, `,"Rounds":[{"round":1}]`, `,"rounds":[{"round":1}],"rounds":[{"round":2}]`,
		`,"actions":[{"task":"train","peakBytes":7,"beats":[{"peakBytes":8}]},{"task":"tr\u0061in","peakBytes":"64 MB"}]`,
		`,"actions":[{"peakBytes":{"$integer":"9007199254740993"}}]`,
		`,"job":{"model":{"init":{"seed":{"$integer":"9007199254740993"}}}}`,
		`,"rounds":[{"round":1e400}]`, `,"rounds":{}`, `,"rounds":[1]`, `,"rounds":[{}`, `,"tenant":"\u0061"`,
	} {
		f.Add(briefDocument(part))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := scanBrief(data)
		if !ok || !json.Valid(data) || strings.Contains(string(data), `\`) || strings.Contains(string(data), "null") {
			return // of a field that comes twice, null is another value
		}
		want, err := parseBrief(data)
		if err != nil {
			return // in a part that the scanner skips
		}
		if len(got.Rounds)+len(want.Rounds) == 0 {
			got.Rounds, want.Rounds = nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, want %+v", data, got, want)
		}
	})
}

// A number that is read the short way has the bits that strconv gives it, and numbers of records are read that way.
func TestDecimal(t *testing.T) {
	draw, short := rand.New(rand.NewPCG(1, 2)), 0
	check := func(text string) bool {
		got, ok := decimal([]byte(text))
		want, err := strconv.ParseFloat(text, 64)
		if ok && (err != nil || math.Float64bits(got) != math.Float64bits(want)) {
			t.Errorf("%s: %v, want %v, %v", text, got, want, err)
		}
		return ok
	}
	const all = 200_000
	for range all {
		v := draw.Float64() * math.Pow(10, float64(draw.IntN(8)-4))
		if check(strconv.FormatFloat(v, 'f', -1, 64)) {
			short++
		}
		check(strconv.FormatFloat(v, 'f', draw.IntN(22), 64))
		check(fmt.Sprintf("%d.%018d5", draw.IntN(3), draw.Int64N(1e18))) // half way between two numbers, or nearly
		check(fmt.Sprint(uint64(draw.Int64N(1<<60)) | 1<<53))
	}
	if short < all*9/10 {
		t.Errorf("only %d of %d are read the short way", short, all)
	}
	for _, text := range []string{
		"", ".", "-1", "1e3", "1.2.3", "0", "0.0", "5.", ".5", "9007199254740993.", "007", "1E", "+2",
	} {
		check(text)
	}
}

// A record that disdel wrote is read by the scanner, and all of its rounds and peaks are.
func TestTheScannerReadsWhatIsWritten(t *testing.T) {
	accuracy, r2 := 0.75, 0.5
	r := disdel.Record{APIVersion: disdel.APIVersion, ID: "job-01m80104rj3cabn3tetc26z8w3", Tenant: `an"n\`}
	for i := range 1000 {
		loss := 1 / float64(i+3)
		r.Rounds = append(r.Rounds, disdel.Round{
			Round: i, TrainLoss: 2 * loss, Loss: &loss, Accuracy: &accuracy, Scores: disdel.Scores{RMSE: loss, R2: &r2},
		})
	}
	r.Activations = []disdel.Activation{{Invocation: disdel.Invocation{Task: disdel.TaskTrain}, Peak: 64 * disdel.MB}}
	document, err := encodeRecord(&r)
	if err != nil {
		t.Fatal(err)
	}
	document["_id"], document["_rev"] = string(r.ID), "1-a"
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := scanBrief(raw)
	if !ok || got.Rev != "1-a" || got.Tenant != r.Tenant || !reflect.DeepEqual(got.Rounds, r.Rounds) {
		t.Errorf("%v: revision %q of %q, %d rounds", ok, got.Rev, got.Tenant, len(got.Rounds))
	}
	acts := got.Activations
	if len(acts) != 1 || acts[0].Peak != 64*disdel.MB || acts[0].Task != disdel.TaskTrain {
		t.Errorf("activations: %+v", acts)
	}
	for _, cut := range []int{1, len(raw) / 2, len(raw) - 1} {
		if _, ok := scanBrief(raw[:cut]); ok {
			t.Errorf("the first %d bytes of %d are taken for a record", cut, len(raw))
		}
	}
}

// A server's answer is split into its documents; deleted and missing ones are none. A cut answer is an error.
func TestSplitDocuments(t *testing.T) {
	const answer = `{"total_rows":3,"offset":null,"rows":[
{"id":"a","key":"a","value":{"rev":"1-x"},"doc":{"_id":"a","t":"}]\"","n":[1,{"b":2}]}},
{"key":"b","error":"not_found"},
{"id":"c","key":"c","value":{"rev":"2-y","deleted":true},"doc":null},
{"id":"d","key":"d","value":{"rev":"1-z"},"doc": {} }
]}`
	got, ok := splitDocuments([]byte(answer), 4)
	if !ok || len(got) != 2 || string(got["a"]) != `{"_id":"a","t":"}]\"","n":[1,{"b":2}]}` || string(got["d"]) != "{}" {
		t.Errorf("%v %q", ok, got)
	}
	for cut := range len(answer) {
		if _, ok := splitDocuments([]byte(answer[:cut]), 4); ok {
			t.Fatalf("%d bytes of it are taken for an answer", cut)
		}
	}
}
