package cli

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/infer"
)

var failIfFlag = &cli.StringSliceFlag{
	Name:  "fail-if",
	Usage: "exit with 10 if `RULE` holds: 'accuracy < 0.9' or 'did not learn' (repeatable)",
}

// rule is one rule of --fail-if: a comparison of a metric with a bound, or "did not learn".
type rule struct {
	text     string
	metric   metric // without a name: "did not learn"
	operator string
	bound    float64
}

// metric is a number that a record of a job may have.
type metric struct {
	name  string
	value func(r *disdel.Record, result *report.JobResult) *float64 // nil: the record does not have it
}

// metrics are what rules may compare: times are in seconds, costs in GB-s, all others without a unit.
var metrics = []metric{
	{"accuracy", func(r *disdel.Record, j *report.JobResult) *float64 {
		if r.Best != nil && j.Accuracy != nil {
			return &r.Best.Accuracy
		}
		return j.Accuracy
	}},
	{"loss", func(r *disdel.Record, j *report.JobResult) *float64 {
		if r.Best != nil && j.Loss != nil {
			return &r.Best.Loss
		}
		return j.Loss
	}},
	{"trainAccuracy", func(_ *disdel.Record, j *report.JobResult) *float64 { return j.Trained }},
	{"trainLoss", func(_ *disdel.Record, j *report.JobResult) *float64 { return j.Train }},
	{"f1", func(r *disdel.Record, _ *report.JobResult) *float64 {
		if r.F1 != nil {
			return r.F1
		}
		return meanOfClasses(r.ByClass, func(f disdel.ClassFigures) float64 { return f.F1 })
	}},
	{"top5", func(r *disdel.Record, _ *report.JobResult) *float64 { return r.Top5 }},
	{"precision", func(r *disdel.Record, _ *report.JobResult) *float64 {
		return meanOfClasses(r.ByClass, func(f disdel.ClassFigures) float64 { return f.Precision })
	}},
	{"recall", func(r *disdel.Record, _ *report.JobResult) *float64 {
		return meanOfClasses(r.ByClass, func(f disdel.ClassFigures) float64 { return f.Recall })
	}},
	{"rmse", func(r *disdel.Record, _ *report.JobResult) *float64 { return unlessZero(r.RMSE) }},
	{"mae", func(r *disdel.Record, _ *report.JobResult) *float64 { return unlessZero(r.MAE) }},
	{"r2", func(r *disdel.Record, _ *report.JobResult) *float64 { return r.R2 }},
	{"auc", func(r *disdel.Record, _ *report.JobResult) *float64 { return unlessZero(r.AUC) }},
	{"rounds", func(_ *disdel.Record, j *report.JobResult) *float64 { return new(float64(j.Rounds)) }},
	{"time", func(_ *disdel.Record, j *report.JobResult) *float64 { return new(time.Duration(j.Duration).Seconds()) }},
	{"cost", func(_ *disdel.Record, j *report.JobResult) *float64 { return new(j.CostGBs) }},
}

func unlessZero(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// meanOfClasses is the mean of a figure over the classes that have held-out rows.
func meanOfClasses(b *disdel.ByClass, figure func(disdel.ClassFigures) float64) *float64 {
	if b == nil {
		return nil
	}
	sum, n := 0.0, 0
	for class := range b.Rows {
		if f := b.Figures(class); f.Rows > 0 {
			sum, n = sum+figure(f), n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

var comparison = regexp.MustCompile(`^\s*(\w+)\s*(<=|>=|==|<|>)\s*(\S+)\s*$`)

// parseRule reads a rule. It returns Invalid for anything but METRIC OPERATOR NUMBER and "did not learn".
func parseRule(text string) (rule, error) {
	if strings.EqualFold(strings.Join(strings.Fields(text), " "), "did not learn") {
		return rule{text: text}, nil
	}
	parts := comparison.FindStringSubmatch(text)
	if parts == nil {
		return rule{}, badRule(text, "it is no comparison of a metric with a number")
	}
	i := slices.IndexFunc(metrics, func(m metric) bool { return strings.EqualFold(m.name, parts[1]) })
	if i < 0 {
		return rule{}, badRule(text, fmt.Sprintf("there is no metric %q", parts[1]))
	}
	bound, err := strconv.ParseFloat(parts[3], 64)
	if d, wrong := time.ParseDuration(parts[3]); err != nil && wrong == nil && metrics[i].name == "time" {
		bound, err = d.Seconds(), nil
	}
	if err != nil || math.IsNaN(bound) {
		return rule{}, badRule(text, fmt.Sprintf("%q is no number", parts[3]))
	}
	return rule{strings.TrimSpace(text), metrics[i], parts[2], bound}, nil
}

func badRule(text, why string) error {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = m.name
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "read --fail-if", Msg: fmt.Sprintf("%.80q: %s", text, why),
		Hint: "write METRIC OPERATOR NUMBER, as 'accuracy < 0.9', or 'did not learn'; the metrics are " +
			strings.Join(names, ", ") + "; the operators are <, <=, >, >= and ==",
	}
}

// rulesOf reads all rules of a command line.
func rulesOf(c *cli.Context) ([]rule, error) {
	var out []rule
	for _, text := range c.StringSlice("fail-if") {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// checkRules returns Invalid for a wrong --fail-if, and for one of a job whose end the command does not see.
func checkRules(c *cli.Context) error {
	rules, err := rulesOf(c)
	if err != nil || len(rules) == 0 || !c.Bool("detach") {
		return err
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Msg: "--detach returns before the job ends, so --fail-if cannot check its result",
		Hint: fmt.Sprintf("leave --fail-if out, and check the result later: disdel jobs wait JOB --fail-if '%s'",
			rules[0].text),
	}
}

// failIfEvaluated is failIf for an evaluation of a model, which has an accuracy, a loss and figures of the classes.
func failIfEvaluated(c *cli.Context, e *infer.Evaluation) error {
	rules, err := rulesOf(c)
	if err != nil {
		return err
	}
	value := func(figure func(disdel.ClassFigures) float64) *float64 {
		sum := 0.0
		for i := range e.Classes {
			sum += figure(e.Classes[i].ClassFigures)
		}
		return new(sum / float64(max(1, len(e.Classes))))
	}
	values := map[string]*float64{
		"accuracy": &e.Accuracy, "loss": &e.Loss,
		"f1":        value(func(f disdel.ClassFigures) float64 { return f.F1 }),
		"precision": value(func(f disdel.ClassFigures) float64 { return f.Precision }),
		"recall":    value(func(f disdel.ClassFigures) float64 { return f.Recall }),
	}
	if e.F1 != nil { // several labels, each yes or no
		values["f1"], values["precision"], values["recall"] = e.F1, nil, nil
	}
	if e.R2 != nil { // numbers have no classes
		values = map[string]*float64{"loss": &e.Loss, "rmse": &e.RMSE, "mae": &e.MAE, "r2": e.R2}
	}
	var reasons []string
	for _, one := range rules {
		if why := one.compared("evaluation", values[one.metric.name]); why != "" {
			reasons = append(reasons, why)
		}
	}
	return broken(reasons, "", "use accuracy, loss, f1, precision or recall, and of numbers rmse, mae or r2; "+
		"disdel report JOB shows the job of the model")
}

// broken is the error of rules that are met, nil for none.
func broken(reasons []string, job disdel.JobID, hint string) error {
	if len(reasons) == 0 {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.OverLimit, Op: "check the result", Job: job, Msg: strings.Join(reasons, "; "), Err: terminal.ErrRule,
		Hint: hint,
	}
}

// failIf returns an error with terminal.ErrRule if the result of a job that succeeded meets a rule of the command line.
// A rule about a metric that the record does not have is met: no job passes unmeasured.
func failIf(c *cli.Context, r *disdel.Record) error {
	rules, err := rulesOf(c)
	if err != nil {
		return err
	}
	var reasons []string
	for _, one := range rules {
		if why := one.met(r); why != "" {
			reasons = append(reasons, why)
		}
	}
	return broken(reasons, r.ID, "disdel report "+string(r.ID))
}

// met says why the result of a job meets the rule, "" if it does not.
func (r rule) met(rec *disdel.Record) string {
	if r.metric.name == "" {
		if rec.Learned == nil || *rec.Learned {
			return ""
		}
		return "the job did not learn"
	}
	result := report.JobResultOf(rec)
	return r.compared("job", r.metric.value(rec, &result))
}

// compared says why a value meets the rule, "" if it does not. nil: whose result it is has no such value.
func (r rule) compared(whose string, value *float64) string {
	switch {
	case value == nil:
		return fmt.Sprintf("the %s has no %s to compare with %s", whose, r.metric.name, r.text)
	case r.holds(*value):
		return fmt.Sprintf("%s (%s is %.4g)", r.text, r.metric.name, *value)
	default:
		return ""
	}
}

// holds compares a value with the bound. A value that is not a number meets every rule.
func (r rule) holds(value float64) bool {
	if math.IsNaN(value) {
		return true
	}
	switch r.operator {
	case "<":
		return value < r.bound
	case "<=":
		return value <= r.bound
	case ">":
		return value > r.bound
	case ">=":
		return value >= r.bound
	default:
		return value == r.bound
	}
}
