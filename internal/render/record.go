package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller"
	"github.com/disdel/disdel/internal/addresses"
	"github.com/disdel/disdel/internal/report"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// actionRow is one line of the table of actions: the sums of the report, and how often one round took the action.
type actionRow struct {
	report.Action
	attempts, legs int // the most of one round
}

// actionRows sums the activations of each action, in the order of a round, then by level and member.
func actionRows(list []disdel.Activation) []actionRow {
	slots := disdel.BySlot(list)
	rows := make([]actionRow, len(slots))
	for i, sums := range report.ActionsOf(list) {
		row := actionRow{Action: sums}
		for _, a := range slots[i] {
			if !strings.HasSuffix(a.Invocation.ID, controller.PublishSuffix) { // publishing again is no other attempt
				row.attempts = max(row.attempts, a.Attempt)
			}
			row.legs = max(row.legs, a.Leg+1)
		}
		rows[i] = row
	}
	return rows
}

// PrintRecord prints the result of a job.
func PrintRecord(w io.Writer, r *disdel.Record) {
	fmt.Fprintf(w, "job       %s (%s)  %s\n", terminal.Clean(r.Job.Metadata.Name), r.ID, r.Status)
	if len(r.Rounds) > 0 {
		fmt.Fprintf(w, "%-8s  %s   %s%s\n", r.Metric().Title, accuracyText(r), disdel.Counted(len(r.Rounds), "round"),
			prefixed("   stopped early: ", r.Stopped))
	}
	if r.Continued != nil {
		fmt.Fprintf(w, "start     %s\n", terminal.Clean(r.Continued.Text(r.Job.Training.Epochs)))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "warning   %s\n", terminal.Clean(text))
	}
	if r.Model != nil {
		fmt.Fprintf(w, "model     %s:v%d  %s\n", terminal.Clean(r.Model.Name), r.Model.Version, r.Model.Size)
	}
	p := r.Phases
	fmt.Fprintf(w, "time      %s: prepare %s, train %s, aggregate %s, evaluate %s\n", secondsText(p.Total),
		secondsText(p.Prepare), secondsText(p.Train), secondsText(p.Aggregate), secondsText(p.Evaluate))
	fmt.Fprintf(w, "cost      %.2f GB-s%s\n", r.CostGBs, evaluationText(r))
	fmt.Fprintf(w, "          by use %.2f GB-s%s\n", r.MeteredCost(), moneyText(r))
	if f := r.Plan.Forecast; f != nil {
		fmt.Fprintf(w, "forecast  %s; %s\n", timeText(f.Duration), costText(f.Cost))
	}
	if text := report.GPUText(r); text != "" {
		fmt.Fprintf(w, "gpu       %s\n", text)
	}
	if l := r.Losses; l.Attempts > 0 {
		fmt.Fprintf(w, "losses    %s: %s, %.2f GB-s\n", disdel.Counted(l.Attempts, "failed attempt"),
			secondsText(l.Duration), l.Cost)
	}
	fmt.Fprintln(w)
	terminal.Table(w, terminal.Fitted(w, actionTable(actionRows(r.Activations)), "COLD", "TOTAL", "TIMEOUT", "RUNS",
		"LONGEST", "ESTIMATE")...)
}

// actionTable has columns for failures, attempts and legs only where there was more than one.
func actionTable(list []actionRow) [][]string {
	attempts := slices.ContainsFunc(list, func(u actionRow) bool { return u.attempts > 1 })
	legs := slices.ContainsFunc(list, func(u actionRow) bool { return u.legs > 1 })
	failures := slices.ContainsFunc(list, func(u actionRow) bool { return u.Failed > 0 })
	cells := func(name, runs, failed, attempt, leg string, rest ...string) []string {
		out := []string{name, runs}
		if failures {
			out = append(out, failed)
		}
		if attempts {
			out = append(out, attempt)
		}
		if legs {
			out = append(out, leg)
		}
		return append(out, rest...)
	}
	rows := [][]string{cells("ACTION", "RUNS", "FAILED", "ATTEMPTS", "LEGS", "COLD", "ESTIMATE", "LIMIT", "PEAK",
		"TIMEOUT", "LONGEST", "TOTAL", "OUTCOME")}
	for _, u := range list {
		rows = append(rows, cells(u.Name, fmt.Sprint(u.Runs), fmt.Sprint(u.Failed), fmt.Sprint(max(1, u.attempts)),
			fmt.Sprint(u.legs), fmt.Sprint(u.Cold), u.Estimate.String(),
			u.Limit.String(), known(u.Peak), u.Timeout.String(), secondsText(u.Longest),
			secondsText(u.Total), u.Outcome.String()))
	}
	return rows
}

// accuracyText is the held-out accuracy of a job's model, of numbers its errors, or why there is none.
func accuracyText(r *disdel.Record) string {
	accuracy, loss, ok := heldOutScores(r)
	metric, natural, top5 := r.Metric(), r.Data.Metric(r.Job.Training.Loss), ""
	if v := metric.Value(heldOutFigures(r)); ok && v != nil && metric.Name != natural.Name {
		text := metric.Number(*v) + " held out"
		if n := natural.Value(heldOutFigures(r)); n != nil {
			text += "   " + natural.Text(*n)
		}
		return text + lossText(r, loss)
	}
	if ok && (r.Data.Sparse != nil || len(r.Data.Targets) > 0 || r.Data.NextToken) {
		return scoresText(r, accuracy, loss)
	}
	if r.Top5 != nil {
		top5 = fmt.Sprintf("   top-5 accuracy %.4f", *r.Top5)
	}
	switch {
	case ok:
		return fmt.Sprintf("%.4f held out%s%s", accuracy, lossText(r, loss), top5)
	case r.Data.HeldOut == 0 && r.Plan.HeldOut == 0:
		return "- no rows held out"
	default:
		return "- not evaluated"
	}
}

// scoresText is what held-out rows showed of a model of sparse rows, of numbers or of texts.
func scoresText(r *disdel.Record, accuracy, loss float64) string {
	first, more, _ := strings.Cut(r.Scores.Text(), ", ")
	text := strings.TrimPrefix(first, "RMSE ") + " held out" + prefixed("   ", more)
	switch total := r.Metric(); {
	case r.Data.NextToken:
		text = fmt.Sprintf("%s held out   accuracy %.4f", total.Number(r.Scores.Perplexity), accuracy)
	case r.Scores.F1 != nil:
		text = fmt.Sprintf("%.4f held out   micro F1 %.4f, accuracy %.4f", *r.Scores.F1, r.Scores.MicroF1, accuracy)
	case !r.Data.Numbers():
		text = fmt.Sprintf("%.4f held out   %s", accuracy, r.Scores.Text())
	case total.Name == disdel.MetricMAE:
		text = fmt.Sprintf("%s held out   RMSE %.5g", total.Number(r.Scores.MAE), r.Scores.RMSE)
	}
	return text + lossText(r, loss)
}

// lossText is the held-out loss, and the round of a kept model.
func lossText(r *disdel.Record, loss float64) string {
	text := fmt.Sprintf("   loss %.4f", loss)
	if r.Best != nil {
		text += fmt.Sprintf(", the best, of round %d", r.Best.Round+1)
	}
	return text
}

// heldOutScores is the last evaluation of a job, or the best one if its model is kept; ok is false if there was none.
func heldOutScores(r *disdel.Record) (accuracy, loss float64, ok bool) {
	for i := range r.Rounds {
		a, l := r.Rounds[i].Accuracy, r.Rounds[i].Loss
		if l != nil {
			accuracy, loss, ok = 0, *l, true
		}
		if a != nil {
			accuracy = *a
		}
	}
	if r.Best != nil {
		return r.Best.Accuracy, r.Best.Loss, true
	}
	if r.Accuracy != 0 || r.Loss != 0 { // of a record that has no rounds
		return r.Accuracy, r.Loss, true
	}
	return accuracy, loss, ok
}

// heldOutFigures is the evaluation that heldOutScores takes.
func heldOutFigures(r *disdel.Record) (f disdel.Figures) {
	accuracy, loss, ok := heldOutScores(r)
	if !ok {
		return f
	}
	if f = (disdel.Figures{Loss: &loss, Scores: r.Scores}); !r.Data.Numbers() {
		f.Accuracy = &accuracy
	}
	return f
}

func evaluationText(r *disdel.Record) string {
	if r.EvaluationGBs == 0 {
		return ""
	}
	return fmt.Sprintf(", and evaluations %.2f GB-s", r.EvaluationGBs)
}

func moneyText(r *disdel.Record) string {
	money, ok := r.Job.Resources.Money(r.MeteredCost())
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %.3g at %.3g a GB-s", money, r.Job.Resources.Price)
}

// fourDecimals is a value of a table, "-" where there is none.
func fourDecimals(v float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.4f", v)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func known(b disdel.Bytes) string {
	if b == 0 {
		return "-"
	}
	return b.String()
}

// secondsText is a time in a table.
func secondsText(m disdel.Millis) string { return fmt.Sprintf("%.2f s", time.Duration(m).Seconds()) }

// ShowOutcome prints the result of a job with the commands that come next. It returns the job's failure, which it has
// reported, or terminal.ErrPaused.
func ShowOutcome(u *terminal.UI, rec *disdel.Record, notes []string) error {
	u.Say("")
	if err := u.Show(rec, func(w io.Writer) { PrintRecord(w, rec) }); err != nil {
		return err
	}
	for _, text := range rec.Warnings {
		if u.Format != "table" { // which has them
			u.Say("warning: %s", text)
		}
	}
	sayCauses(u, rec)
	for _, note := range notes {
		u.Say("%s", note)
	}
	if rec.Status == disdel.StatusSucceeded {
		return nil
	}
	if rec.Status == disdel.StatusPaused && rec.Failure == nil {
		u.Say("%s is paused, which is no failure", rec.ID)
		u.Say("next:  %s", u.Command(afterwards(rec)...))
		return terminal.Reported(terminal.ErrPaused)
	}
	if u.Format != "table" { // an error is the last line of what programs read
		u.Say("next:  %s", u.Command(afterwards(rec)...))
		return failure(rec)
	}
	u.Fail(failure(rec))
	u.Say("next:  %s", u.Command(afterwards(rec)...))
	return terminal.Reported(failure(rec))
}

// sayCauses prints why a job probably did not learn, and what to try.
func sayCauses(u *terminal.UI, rec *disdel.Record) {
	if rec.Learned == nil || *rec.Learned {
		return
	}
	for _, c := range report.New(rec, time.Now(), u.Place...).Causes {
		u.Say("cause:   %s: %s", c.What, c.Evidence)
		u.Say("try:     %s", c.Command)
	}
}

// afterwards is the next command for a job that did not succeed.
func afterwards(r *disdel.Record) []string {
	stopped := r.Status == disdel.StatusCanceled || r.Status == disdel.StatusPaused
	if stopped || r.Failure != nil && r.Failure.Code == disdel.CodeUnreachable {
		return []string{"resume", string(r.ID)}
	}
	return []string{"report", string(r.ID)}
}

func failure(r *disdel.Record) error {
	if r.Failure != nil {
		return r.Failure
	}
	return &disdel.Error{Kind: disdel.Internal, Op: "run job", Job: r.ID, Msg: "the job ended as " + r.Status.String()}
}

// SayModel prints the next commands for a job that succeeded.
func SayModel(u *terminal.UI, rec *disdel.Record) {
	if rec.Model != nil {
		model := fmt.Sprintf("%s:v%d", rec.Model.Name, rec.Model.Version)
		u.Say("next:  %s\n       %s", u.Command("jobs", "show", string(rec.ID)), u.Command("model", "show", model))
		if !rec.Data.NextToken {
			u.Say("       %s", u.Command("infer", model, "FILE"))
		}
	}
}

// timeUnit is what times are shown in.
type timeUnit struct {
	Name  string
	total time.Duration
}

// unitFor is the unit in which the longest time reads well.
func unitFor(longest disdel.Millis) timeUnit {
	switch d := time.Duration(longest); {
	case d < 10*time.Minute:
		return timeUnit{"s", time.Second}
	case d < 10*time.Hour:
		return timeUnit{"min", time.Minute}
	default:
		return timeUnit{"h", time.Hour}
	}
}

// Value is a time as a number of units.
func (u timeUnit) Value(m disdel.Millis) float64 { return float64(m) / float64(u.total) }

// Text is a time with two digits, without the unit.
func (u timeUnit) Text(m disdel.Millis) string { return twoDigits(u.Value(m)) }

// twoDigits is a number with two digits, or with all of those before the point.
func twoDigits(v float64) string {
	if v < 9.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// basisText says what a forecast is based on: history, or similar jobs.
func basisText(f *disdel.Forecast) string {
	if f.Jobs > 0 && !f.Measured {
		return "extrapolated from " + string(f.Source)
	}
	return string(f.Source)
}

// statusText is a job's status, and what is wrong with its result.
func statusText(r *disdel.Record, status string) string {
	return status + prefixed(", ", r.Verdict())
}

// PrintNext prints the commands that help a job that failed or lost its controller. at is the place of these commands.
func PrintNext(w io.Writer, r *disdel.Record, at addresses.Place, who service.Runner, runs bool) {
	command := func(name string) string { return at.Command(terminal.Program(), name, string(r.ID)) }
	switch {
	case runs:
		fmt.Fprintf(w, "runs      in %s\n", who.Text)
	case r.Status.Unfinished():
		fmt.Fprintf(w, "resume    its record says that it %s, and no process of this home runs it: %s\n",
			standsText(r.Status), command("resume"))
	case r.Status == disdel.StatusCanceled || r.Status == disdel.StatusPaused:
		fmt.Fprintf(w, "resume    %s\n", command("resume"))
	}
	if r.Failure != nil {
		fmt.Fprintf(w, "report    %s\n", command("report"))
	}
}

func standsText(s disdel.Status) string {
	if s == disdel.StatusRunning {
		return "runs"
	}
	return "is " + s.String()
}

// PrintFailure prints why a job failed and the evidence of every failed activation, with logs on request. at is the
// place of the commands in hints.
func PrintFailure(w io.Writer, r *disdel.Record, at addresses.Place, logs bool) {
	if r.Failure == nil {
		return
	}
	fmt.Fprintf(w, "\nfailure   %s\n", terminal.Clean(r.Failure.Error()))
	if r.Failure.Hint != "" {
		fmt.Fprintf(w, "hint      %s\n", terminal.Clean(at.Complete(r.Failure.Hint)))
	}
	for _, a := range r.Activations {
		if a.Outcome == disdel.OutcomeSuccess {
			continue
		}
		fmt.Fprintf(w, "evidence  %s, activation %s, ended as %s\n", a.Invocation.ID, a.ID, a.Outcome)
		for _, e := range a.Evidence {
			fmt.Fprintf(w, "          %s\n", terminal.Clean(e))
		}
		for _, line := range a.Logs {
			if logs {
				fmt.Fprintf(w, "log       %s\n", terminal.Clean(line))
			}
		}
	}
}
