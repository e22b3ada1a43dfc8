package history_test

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/test/historytest"
)

// anyInteger draws from the whole range of int64, often near what a float64 cannot tell apart.
func anyInteger(lot *rand.Rand) int64 {
	edges := []int64{0, 1 << 31, 1 << 53, 1<<53 + 1, 1 << 60, 1<<62 + 3, math.MaxInt64, math.MinInt64, 9007199254740993}
	switch lot.IntN(3) {
	case 0:
		return edges[lot.IntN(len(edges))] + int64(lot.IntN(5)) - 2 // it may wrap, which is a number as well
	case 1:
		return int64(lot.Uint64() >> lot.IntN(64))
	default:
		return -int64(lot.Uint64() >> (1 + lot.IntN(63)))
	}
}

// fillIntegers gives every plain integer below v a drawn value.
func fillIntegers(lot *rand.Rand, v reflect.Value) {
	_, text := v.Addr().Interface().(encoding.TextUnmarshaler)
	if _, own := v.Addr().Interface().(json.Marshaler); text || own { // times, states and sizes that have rules
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillIntegers(lot, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fillIntegers(lot, v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fillIntegers(lot, v.Elem())
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(anyInteger(lot))
	}
}

// integers lists the paths of all integer fields of a schema.
func integers(path string, node map[string]any, out *[]string) {
	types := fmt.Sprint(node["type"])
	if types == "integer" || strings.Contains(types, "number") {
		*out = append(*out, path)
	}
	alternatives, _ := node["anyOf"].([]any)
	for _, one := range alternatives {
		integers(path, one.(map[string]any), out)
	}
	properties, _ := node["properties"].(map[string]any)
	for name, one := range properties {
		if name != "*" {
			integers(strings.TrimPrefix(path+"."+name, "."), one.(map[string]any), out)
		}
	}
}

const smallJob = `apiVersion: disdel/v1
kind: TrainingJob
metadata: {name: integers}
model: {name: lenet5}
data: {source: dataset://digits}
training: {epochs: 1, batchSize: 32, loss: crossEntropy, optimizer: {sgd: {learningRate: 0.1}}}
distribution: {workers: 1}
output: {model: integers}
`

// Whatever integer a job file has, the check refuses it, or the history keeps it and a resume reads it.
func TestEveryIntegerOfAJobFileIsKeptOrRefused(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(jobfile.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var paths []string
	integers("", schema, &paths)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if _, err := jobfile.Parse("job.yaml", []byte(smallJob), nil); err != nil || len(paths) < 30 {
		t.Fatalf("%d paths, %v", len(paths), err)
	}
	for name, open := range addresses() {
		t.Run(name, func(t *testing.T) {
			address := open(t)
			s, lot, kept := opener(address)(t), rand.New(rand.NewPCG(31, 1)), 0
			for i, path := range paths {
				for k := range 8 {
					n := anyInteger(lot)
					file, err := jobfile.Parse("job.yaml", []byte(smallJob), []string{fmt.Sprintf("%s=%d", path, n)})
					if err != nil {
						if k == 0 && disdel.KindOf(err) != disdel.Invalid {
							t.Errorf("%s=%d: %v", path, n, err)
						}
						continue
					}
					kept++
					comesBack(t, s, file.Job, 10*i+k)
				}
			}
			if kept < 20 {
				t.Errorf("only %d drawn jobs were valid", kept)
			}
		})
	}
}

func comesBack(t *testing.T, s *history.Store, job disdel.Job, n int) {
	t.Helper()
	want := historytest.Record(n)
	want.Job = job
	if err := s.Save(context.Background(), &want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(context.Background(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	text, err := jobfile.Print(got.Job) // as report --spec
	if err != nil {
		t.Fatal(err)
	}
	again, err := jobfile.Parse("record", text, nil)
	if diff := cmp.Diff(job, again.Job); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
}

func addresses() map[string]func(*testing.T) string {
	return map[string]func(*testing.T) string{
		"embedded": func(t *testing.T) string { return lite(t, filepath.Join(t.TempDir(), "history.db")).URL() },
		"pouchdb":  pouchdb, // which skips the test where there is none
	}
}

// No integer of a record changes in a history, whichever field it is in.
func TestEveryIntegerOfARecordIsKept(t *testing.T) {
	for name, open := range addresses() {
		t.Run(name, func(t *testing.T) {
			address := open(t)
			s, lot := opener(address)(t), rand.New(rand.NewPCG(31, 2))
			for i := range 40 {
				want := historytest.Record(i)
				want.Checkpoint, want.Best, want.Model = &disdel.Checkpoint{}, &disdel.Best{}, &disdel.ModelRef{}
				want.Data.Sparse = &disdel.SparseData{}
				fillIntegers(lot, reflect.ValueOf(&want).Elem())
				want.CostGBs = float64(anyInteger(lot)) // a number of more than 53 bits that is no integer
				for range 2 {
					if err := s.Save(context.Background(), &want); err != nil {
						t.Fatal(err)
					}
				}
				got, err := s.Get(context.Background(), want.ID)
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Fatalf("record %d: %v (-want +got):\n%s", i, err, diff)
				}
				list, err := s.List(context.Background(), history.Query{Limit: 1})
				if err != nil || len(list) != 1 || list[0].Job.Model.Init.Seed != want.Job.Model.Init.Seed {
					t.Fatalf("record %d in a list: %v", i, err)
				}
			}
		})
	}
}

// put writes a document past the Store, as an earlier version or somebody else did.
func put(t *testing.T, address, database, id, body string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database + "/" + id
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, u.String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// Records that earlier versions wrote with a seed above 2^63 cannot be read. They are named once, disturb no other
// record, and can be deleted.
func TestARecordThatCannotBeReadIsInNobodysWay(t *testing.T) {
	for name, open := range addresses() {
		t.Run(name, func(t *testing.T) {
			address := open(t)
			ctx := context.Background()
			log, said := logtest.NewNullLogger()
			s, err := history.Open(ctx, history.Config{URL: address, Database: "unread", Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, n := range []int{1, 3} {
				r := historytest.Record(n)
				if err := s.Save(ctx, &r); err != nil {
					t.Fatal(err)
				}
			}
			bad := historytest.Record(2).ID
			put(t, address, "unread", string(bad), fmt.Sprintf(`{"apiVersion":%q,"id":%q,"status":"running","tenant":"alice",`+
				`"job":{"model":{"init":{"seed":9223372036854775808}}}}`, disdel.APIVersion, bad))
			digest := history.NewRecordCache(10, func(r *disdel.Record) disdel.JobID { return r.ID })
			for range 3 {
				if list, err := s.List(ctx, history.Query{}); err != nil || len(list) != 2 {
					t.Fatalf("%d records, %v", len(list), err)
				}
				if list, err := digest.List(ctx, s, history.Query{}); err != nil || len(list) != 2 {
					t.Fatalf("%d of a digest, %v", len(list), err)
				}
			}
			if named := warnings(said.AllEntries(), string(bad)); named != 1 {
				t.Errorf("it is named %d times, want once", named)
			}
			if _, err := s.ForTenant("bob").Get(ctx, bad); disdel.KindOf(err) != disdel.NotFound {
				t.Errorf("another tenant is told %v", err)
			}
			id, err := s.ForTenant("alice").Resolve(ctx, string(bad))
			if err != nil || id != bad {
				t.Errorf("%q, %v", id, err)
			}
			_, err = s.ForTenant("alice").Get(ctx, bad)
			if disdel.AsError(err).Code != disdel.CodeUnreadable || !strings.Contains(err.Error(), string(bad)) {
				t.Errorf("get: %v", err)
			}
			if err := s.Delete(ctx, bad); err != nil {
				t.Errorf("delete: %v", err)
			}
			if _, err := s.Get(ctx, bad); disdel.KindOf(err) != disdel.NotFound {
				t.Errorf("after delete: %v", err)
			}
		})
	}
}

func warnings(entries []*logrus.Entry, of string) (n int) {
	for _, e := range entries {
		if e.Level <= logrus.WarnLevel && strings.Contains(e.Message, of) {
			n++
		}
	}
	return n
}
