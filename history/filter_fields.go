package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
)

// JobFacts are the values of a job that filters and tables use.
type JobFacts struct {
	texts          [textFields]string
	numbers        [numberFields]float64 // NaN: unknown
	created, ended time.Time
	labels         map[string]string
	settings       []setting // sorted by path
	searched       string    // all texts in lower case, which words are searched in
}

// setting is a field of a job file. Most jobs share paths and values, which are in memory once.
type setting struct{ path, value unique.Handle[string] }

// The texts of a job.
const (
	factID = iota
	factName
	factState
	factVerdict
	factNetwork
	factData
	factModel
	factTenant
	factBatch
	textFields
)

// The numbers of a job.
const (
	factAccuracy = iota
	factBest
	factLoss
	factTrainLoss
	factRMSE
	factMAE
	factR2
	factF1
	factTop5
	factPerplexity
	factRounds
	factWorkers
	factTime
	factCost
	factMemory
	factLimit
	numberFields
)

// FieldKind is what the values of a field of filters are.
type FieldKind string

// The kinds of fields.
const (
	FieldText     FieldKind = "text"
	FieldNumber   FieldKind = "number"
	FieldBytes    FieldKind = "size, such as 200MB"
	FieldDuration FieldKind = "duration, such as 90s, 10m or 2h"
	FieldMoment   FieldKind = "age, such as 7d, or a date, such as 2026-11-20"
	FieldTag      FieldKind = "tag"
)

// Field is a field of filters.
type Field struct {
	Name    string
	Kind    FieldKind
	Meaning string
	index   int
}

// Fields are the fields of filters. Fields of the job file such as training.batchSize, and label.KEY, are fields, too.
func Fields() []Field { return slices.Clone(filterFields) }

var filterFields = []Field{
	{"id", FieldText, "id of the job", factID},
	{"name", FieldText, "name of the job", factName},
	{"state", FieldText, "queued, admitted, running, paused, succeeded, failed or canceled", factState},
	{"verdict", FieldText, `"did not learn" or "not evaluated", of a job that succeeded`, factVerdict},
	{"network", FieldText, "network or Python program", factNetwork},
	{"data", FieldText, "data set", factData},
	{"model", FieldText, "trained model, NAME:vN", factModel},
	{"tenant", FieldText, "owner of the job", factTenant},
	{"batch", FieldText, "id of the batch", factBatch},
	{"tag", FieldTag, "a tag of the job", 0},
	{"created", FieldMoment, "when the job was submitted", 0},
	{"finished", FieldMoment, "when the job ended", 1},
	{"accuracy", FieldNumber, "held-out accuracy of the model, from 0 to 1 or in %", factAccuracy},
	{"best", FieldNumber, "highest accuracy of a round", factBest},
	{"loss", FieldNumber, "held-out loss of the model", factLoss},
	{"trainLoss", FieldNumber, "training loss of the model", factTrainLoss},
	{"rmse", FieldNumber, "held-out RMSE of a model that predicts numbers", factRMSE},
	{"mae", FieldNumber, "held-out MAE of a model that predicts numbers", factMAE},
	{"r2", FieldNumber, "held-out R2 of a model that predicts numbers", factR2},
	{"f1", FieldNumber, "held-out F1 of a model with several labels, the mean over the labels", factF1},
	{"top5", FieldNumber, "held-out share of rows whose class is among the five most probable", factTop5},
	{"perplexity", FieldNumber, "held-out perplexity of a language model", factPerplexity},
	{"rounds", FieldNumber, "rounds that are over", factRounds},
	{"workers", FieldNumber, "workers of the plan", factWorkers},
	{"time", FieldDuration, "duration of the job", factTime},
	{"cost", FieldNumber, "cost in GB-s", factCost},
	{"memory", FieldBytes, "highest peak of a train action", factMemory},
	{"limit", FieldBytes, "memory limit of a train action", factLimit},
}

// otherNames are further names of fields.
var otherNames = map[string]string{"status": "state", "dataset": "data", "peak": "memory", "ended": "finished"}

// FactsOf reads the facts of a record. It keeps no part of the record in memory.
func FactsOf(r *disdel.Record) JobFacts {
	f := JobFacts{created: r.Created, ended: r.Ended, labels: maps.Clone(r.Job.Metadata.Labels)}
	f.texts = [textFields]string{
		string(r.ID), r.Job.Metadata.Name, r.Status.String(), r.Verdict(),
		cmp.Or(r.Job.Model.NetworkName(), "own layers"), r.Data.Name, "", r.Tenant, f.labels[disdel.BatchLabel],
	}
	if r.Model != nil {
		f.texts[factModel] = fmt.Sprintf("%s:v%d", r.Model.Name, r.Model.Version)
	}
	f.readNumbers(r)
	words := slices.Clone(f.texts[:])
	for key, value := range f.labels {
		words = append(words, key+"="+value)
	}
	f.searched = strings.ToLower(strings.Join(words, "\n"))
	for path, value := range r.Job.Fields() {
		f.settings = append(f.settings, setting{unique.Make(path), unique.Make(value)})
	}
	slices.SortFunc(f.settings, func(a, b setting) int { return strings.Compare(a.path.Value(), b.path.Value()) })
	return f
}

// readNumbers reads the numbers of a record: those of the round whose weights the model has.
func (f *JobFacts) readNumbers(r *disdel.Record) {
	for i := range f.numbers {
		f.numbers[i] = math.NaN()
	}
	set := func(i int, v float64, known bool) {
		if known {
			f.numbers[i] = v
		}
	}
	kept := len(r.ModelRounds())
	for i := range r.Rounds {
		v := &r.Rounds[i]
		if v.Accuracy != nil {
			set(factBest, *v.Accuracy, !(f.numbers[factBest] >= *v.Accuracy))
			set(factAccuracy, *v.Accuracy, i < kept)
		}
		if set(factTrainLoss, v.TrainLoss, i < kept); v.Loss != nil {
			set(factLoss, *v.Loss, i < kept)
		}
	}
	took := r.Phases.Total
	if took == 0 && !r.Ended.IsZero() {
		took = disdel.Millis(max(0, r.Ended.Sub(r.Created)))
	}
	peak := disdel.Bytes(0)
	for i := range r.Activations {
		if a := &r.Activations[i]; a.Task == disdel.TaskTrain {
			peak = max(peak, a.Peak)
		}
	}
	train, planned := r.Plan.Action(disdel.TaskTrain)
	numbers := r.R2 != nil
	set(factRMSE, r.RMSE, r.RMSE > 0 || numbers)
	set(factMAE, r.MAE, r.MAE > 0 || numbers)
	if numbers {
		set(factR2, *r.R2, true)
	}
	if r.F1 != nil {
		set(factF1, *r.F1, true)
	}
	if r.Top5 != nil {
		set(factTop5, *r.Top5, true)
	}
	set(factPerplexity, r.Perplexity, r.Perplexity > 0)
	set(factRounds, float64(len(r.Rounds)), true)
	set(factWorkers, float64(r.Plan.Workers), r.Plan.Workers > 0)
	set(factTime, time.Duration(took).Seconds(), took > 0)
	set(factCost, r.CostGBs, true)
	set(factMemory, float64(peak), peak > 0)
	set(factLimit, float64(train.Limits.Memory), planned)
}

// Setting is the value of a field of the job file, as JSON without the quotation marks of a text.
func (f *JobFacts) Setting(path string) (value string, ok bool) {
	i, ok := slices.BinarySearchFunc(f.settings, path, func(s setting, path string) int {
		return strings.Compare(s.path.Value(), path)
	})
	if !ok {
		return "", false
	}
	return f.settings[i].value.Value(), true
}

// Settings calls yield with every field of the job file that the job has, by its path.
func (f *JobFacts) Settings(yield func(path, value string) bool) {
	for _, s := range f.settings {
		if !yield(s.path.Value(), s.value.Value()) {
			return
		}
	}
}

// Text is the text of a field, of a label (label.KEY) or of a field of the job file. ok is false if the job has none.
func (f *JobFacts) Text(name string) (text string, ok bool) {
	if key, is := strings.CutPrefix(name, "label."); is {
		text, ok = f.labels[key]
		return text, ok
	}
	if field, is := fieldOf(name); is && field.Kind == FieldText {
		text = f.texts[field.index]
		return text, text != ""
	}
	return f.Setting(name)
}

// Number is the value of a field that is a number: seconds of durations, bytes of sizes, seconds since 1970 of moments.
// ok is false if the job has none.
func (f *JobFacts) Number(name string) (v float64, ok bool) {
	field, is := fieldOf(name)
	switch {
	case is && field.Kind == FieldMoment:
		at := f.moment(field.index)
		return float64(at.UnixMilli()) / 1000, !at.IsZero()
	case is && field.Kind != FieldText && field.Kind != FieldTag:
		v = f.numbers[field.index]
		return v, !math.IsNaN(v)
	}
	text, ok := f.Text(name)
	v, err := strconv.ParseFloat(text, 64)
	return v, ok && err == nil
}

func (f *JobFacts) moment(index int) time.Time {
	if index == 0 {
		return f.created
	}
	return f.ended
}

// fieldOf is the field of a name, in any case.
func fieldOf(name string) (Field, bool) {
	name = cmp.Or(otherNames[strings.ToLower(name)], name)
	i := slices.IndexFunc(filterFields, func(f Field) bool { return strings.EqualFold(f.Name, name) })
	if i < 0 {
		return Field{}, false
	}
	return filterFields[i], true
}

// conditionFault is what is wrong with a condition: with its value, or with its field.
type conditionFault struct {
	text    string
	ofValue bool
}

// conditionOf is the condition of a field, an operator and a value. A comparison with a value that the job does not
// have does not hold; != is the opposite of =.
func conditionOf(name, operator, value string) (holds condition, needsTags bool, fault *conditionFault) {
	if operator == "!=" {
		equal, needsTags, fault := conditionOf(name, "=", value)
		return func(s *subject) bool { return !equal(s) }, needsTags, fault
	}
	field, known := fieldOf(name)
	switch {
	case known && field.Kind == FieldTag:
		match, fault := textMatch(name, operator, value)
		return func(s *subject) bool { return slices.ContainsFunc(s.tags, match) }, true, fault
	case known && field.Kind == FieldText:
		match, fault := textMatch(name, operator, value)
		return func(s *subject) bool { return s.texts[field.index] != "" && match(s.texts[field.index]) }, false, fault
	case known && field.Kind == FieldMoment:
		holds, fault = momentCondition(field.index, operator, value)
		return holds, false, fault
	case known:
		holds, fault = numberCondition(field, operator, value)
		return holds, false, fault
	case !strings.Contains(name, "."):
		return nil, false, &conditionFault{text: unknownField(name)}
	}
	holds, fault = settingCondition(name, operator, value)
	return holds, false, fault
}

func unknownField(name string) string {
	names := make([]string, 0, len(filterFields))
	for _, f := range filterFields {
		names = append(names, f.Name)
	}
	if closest := spelling.Closest(name, names); closest != "" {
		return fmt.Sprintf("there is no field %q; did you mean %s?", name, closest)
	}
	return fmt.Sprintf("there is no field %q; a label is label.%s, a field of the job file has a dot, other fields are %s",
		name, name, strings.Join(names, ", "))
}

// textMatch tells whether a text fulfils an operator and a value.
func textMatch(name, operator, value string) (func(string) bool, *conditionFault) {
	switch operator {
	case "=", ":":
		return func(text string) bool { return glob(value, text) }, nil
	case "~":
		value = strings.ToLower(value)
		return func(text string) bool { return strings.Contains(strings.ToLower(text), value) }, nil
	}
	return nil, &conditionFault{text: fmt.Sprintf("%s is a text, which takes =, !=, : or ~ instead of %s", name, operator)}
}

// compares tells whether an operator holds between two numbers, of which a NaN fulfils none.
func compares(operator string, a, b float64) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	default:
		return a == b
	}
}

func numberCondition(field Field, operator, value string) (condition, *conditionFault) {
	v, ok := numberOf(field.Kind, value)
	switch {
	case operator == "~":
		text := fmt.Sprintf("%s is a number, which takes =, !=, <, <=, > or >= instead of ~", field.Name)
		return nil, &conditionFault{text: text}
	case !ok:
		return nil, &conditionFault{fmt.Sprintf("%s needs a %s, and %q is none", field.Name, field.Kind, value), true}
	}
	return func(s *subject) bool { return compares(operator, s.numbers[field.index], v) }, nil
}

// numberOf reads a number of a kind: seconds of a duration, bytes of a size.
func numberOf(kind FieldKind, text string) (float64, bool) {
	switch kind {
	case FieldBytes:
		b, err := disdel.ParseBytes(text)
		return float64(b), err == nil
	case FieldDuration:
		d, ok := durationOf(text)
		return d.Seconds(), ok
	}
	digits, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if percent {
		v /= 100
	}
	return v, err == nil && !math.IsNaN(v)
}

// longest is longer than any history, and fits a duration.
const longest = 10_000 // weeks

// durationOf reads a duration in Go's syntax, or in days or weeks.
func durationOf(text string) (time.Duration, bool) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseFloat(digits, 64)
			return time.Duration(min(n, longest) * float64(length)), err == nil && n >= 0
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

// momentCondition compares the age of a moment with a duration, or the moment with a day or a time in UTC.
func momentCondition(index int, operator, value string) (condition, *conditionFault) {
	if operator == "~" {
		return nil, &conditionFault{text: "a moment takes =, !=, <, <=, > or >= instead of ~"}
	}
	if age, ok := durationOf(value); ok {
		return func(s *subject) bool {
			at := s.moment(index)
			return !at.IsZero() && compares(operator, s.now.Sub(at).Seconds(), age.Seconds())
		}, nil
	}
	from, length, ok := dayOf(value)
	if !ok {
		return nil, &conditionFault{fmt.Sprintf("%q is not an %s", value, FieldMoment), true}
	}
	return func(s *subject) bool {
		at, from := s.moment(index), from(s.now)
		until := from.Add(length)
		switch {
		case at.IsZero():
			return false
		case operator == "<":
			return at.Before(from)
		case operator == "<=":
			return at.Before(until)
		case operator == ">":
			return !at.Before(until)
		case operator == ">=":
			return !at.Before(from)
		default:
			return !at.Before(from) && at.Before(until)
		}
	}, nil
}

// dayOf reads "today", "yesterday", a day or a time, and returns its start and its length. Days are those of UTC.
func dayOf(text string) (from func(now time.Time) time.Time, length time.Duration, ok bool) {
	const day = 24 * time.Hour
	switch strings.ToLower(text) {
	case "today":
		return func(now time.Time) time.Time { return now.UTC().Truncate(day) }, day, true
	case "yesterday":
		return func(now time.Time) time.Time { return now.UTC().Truncate(day).Add(-day) }, day, true
	}
	for _, form := range []struct {
		layout string
		length time.Duration
	}{
		{time.DateOnly, day},
		{"2006-01-02T15:04", time.Minute},
		{"2006-01-02T15:04:05", time.Second},
		{time.RFC3339Nano, time.Nanosecond},
	} {
		if at, err := time.Parse(form.layout, text); err == nil {
			return func(time.Time) time.Time { return at }, form.length, true
		}
	}
	return nil, 0, false
}

// settingCondition compares a label or a field of the job file: as numbers where both are numbers.
func settingCondition(name, operator, value string) (condition, *conditionFault) {
	v, err := strconv.ParseFloat(value, 64)
	if strings.HasPrefix(operator, "<") || strings.HasPrefix(operator, ">") {
		if err != nil || math.IsNaN(v) {
			return nil, &conditionFault{fmt.Sprintf("%s needs a number, and %q is none", operator, value), true}
		}
		return func(s *subject) bool {
			has, ok := s.Number(name)
			return ok && compares(operator, has, v)
		}, nil
	}
	match, fault := textMatch(name, operator, value)
	return func(s *subject) bool {
		if has, ok := s.Number(name); ok && err == nil && operator != "~" {
			return has == v
		}
		text, ok := s.Text(name)
		return ok && match(text)
	}, fault
}
