package report

import (
	"bytes"
	_ "embed" // of the page, its style and the sheet
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/terminal"
)

//go:embed page.gohtml
var pageText string

//go:embed page.css
var pageStyle string

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"list":     newList,
		"sentence": Sentence,
		"heading":  heading,
		"label":    Label,
		"meanings": func(page template.HTML) template.HTML { return Meanings(string(page)) },
	}).Parse(pageText))
})

// pageList is a section of sentences; without any it is left out.
type pageList struct {
	Title string
	Rows  []string
}

func newList(title string, rows []string) pageList { return pageList{title, rows} }

// Sentence starts a text with a capital and ends it with a stop.
func Sentence(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	rest := strings.TrimRight(text[size:], ".")
	if !strings.HasSuffix(rest, "?") {
		rest += "."
	}
	return string(unicode.ToUpper(first)) + rest
}

// heading is the head of a column of the terminal as a page has it: "TRAIN LOSS" is "Train loss".
func heading(name string) string {
	if name != strings.ToUpper(name) || slices.Contains([]string{"RMSE", "MAE", "R2"}, name) {
		return name
	}
	return strings.TrimSuffix(Sentence(strings.ToLower(name)), ".")
}

// Meaning is the definition of a label with its unit, "" for an unknown label.
func Meaning(label string) string { return meanings[strings.ToLower(label)] }

// Labels lists the labels that Meaning knows, in small letters and sorted.
func Labels() []string { return slices.Sorted(maps.Keys(meanings)) }

// Label is a label as HTML. A click, a tap or a key shows its meaning; see Meanings.
func Label(label string) template.HTML {
	if Meaning(label) == "" {
		return template.HTML(template.HTMLEscapeString(label)) //nolint:gosec // it is escaped
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // it is escaped
		`<button type="button" class="what" popovertarget="%s">%s</button>`,
		meaningID(label), template.HTMLEscapeString(label)))
}

// Hint is Label for a label that is a link or names a field: a mark beside it shows the meaning.
func Hint(label string) template.HTML {
	if Meaning(label) == "" {
		return ""
	}
	return template.HTML(fmt.Sprintf( //nolint:gosec // a label with a meaning has only letters
		` <button type="button" class="what mark-what" popovertarget="%s" aria-label="What is %s?"></button>`,
		meaningID(label), template.HTMLEscapeString(label)))
}

// meaningID is the id of the element with the meaning of a label.
func meaningID(label string) string {
	return "what-" + strings.ReplaceAll(strings.ToLower(label), " ", "-")
}

// Meanings is the meanings of all labels of a page, which its buttons show. It belongs once into the page.
func Meanings(page string) template.HTML {
	var out strings.Builder
	for _, label := range Labels() {
		if strings.Contains(page, `popovertarget="`+meaningID(label)+`"`) {
			fmt.Fprintf(&out, `<div popover="" id="%s" class="meaning"><b>%s</b> %s</div>`+"\n", meaningID(label),
				strings.TrimSuffix(Sentence(label), "."), template.HTMLEscapeString(Sentence(Meaning(label))))
		}
	}
	return template.HTML(out.String()) //nolint:gosec // its texts are escaped
}

// meanings explains the names of columns, tiles and fields. docs/reference/labels.md has the same table.
var meanings = map[string]string{
	"accuracy":        "share of the held-out rows that the model classifies correctly, from 0 to 1",
	"activations":     "memory of the layer's values for a batch, forward and backward",
	"across":          "the parameter or result on the lower axis",
	"action":          "code with a memory limit and a timeout, such as train or aggregate; workers count from 0",
	"another field":   "any field of the job file, such as training.batchSize, or a label",
	"answer":          "what the model predicts for the row",
	"attempt":         "a failed activation is repeated as the next attempt",
	"axis":            "what the lower axis counts: rounds, time or cost by use",
	"batch":           "rows of one step, or the job batch that started the job",
	"best accuracy":   "highest accuracy of all rounds on held-out rows, from 0 to 1",
	"class":           "a label of the data, as a number",
	"classes":         "number of different labels of the data set",
	"cold":            "time that a new container took to start; -: the container was warm",
	"column":          "column of the table",
	"compute":         "time of all activations for computing",
	"continued by":    "models whose training started from the weights of this one",
	"cost":            "GB-s: memory limit of the train and aggregate actions times the time of the job",
	"cost at most":    "GB-s: every action for its whole timeout",
	"cost by use":     "GB-s: memory limit times duration of every activation, as a platform bills it",
	"created":         "time in UTC at which the job was submitted, or the item made",
	"csv file":        "a table with the names of its columns in the first line, at most 4 MB",
	"data":            "data set that the job trains on, or that the model learned from",
	"data set":        "rows to train on, under a name that job files use",
	"disk":            "bytes of data sets, models, weights, checkpoints and records, of the quota --disk",
	"epoch":           "one pass over all training rows",
	"epochs":          "passes over all training rows",
	"epochs in all":   "passes over all training rows, with those that are done",
	"error":           "estimate over peak, in percent of the peak",
	"estimate":        "expected peak memory of the action, computed before the job began",
	"event":           "what a line of the audit log is about",
	"example":         "a value of the column",
	"f1":              "harmonic mean of precision and recall, from 0 to 1",
	"failed":          "activations of the action that failed",
	"fault":           "what is wrong in the job file, and what to write",
	"field":           "place in the job file",
	"filter":          "conditions such as accuracy > 0.9 and tag:lenet; Fields lists all names",
	"find":            "words that a line must have",
	"finished":        "time in UTC at which the job ended",
	"from":            "first value that is shown, or where something comes from",
	"group by":        "rows with the same value come together, with totals",
	"held out":        "rows that are never trained on; the model is measured on them",
	"held-out result": "accuracy from 0 to 1, or RMSE, on rows that were never trained on",
	"high":            "highest value of the column",
	"is":              "kind of the values of the column",
	"item":            "a data set, a model or a job that other tenants may read",
	"job":             "one training that a user submits: a job file and what came of it",
	"job file":        "text in YAML that says what to train; disdel explain lists its fields",
	"jobs at once":    "jobs that run now, of the quota --jobs",
	"kind":            "kind of the layer, of the values, or of the item",
	"layer":           "part of the network that computes, by its name",
	"label column":    "column that the model learns to predict; detect: disdel chooses it",
	"last use":        "time in UTC of the last sign-in with the token, exact to ten minutes",
	"layers":          "first and last layer of the stage",
	"left out":        "workers without whose weights the mean was taken",
	"limit":           "memory limit of the action",
	"line":            "line and column in the job file, or one line of a log",
	"longest":         "longest activation of the action",
	"loss":            "mean loss of the held-out rows; lower is better",
	"low":             "lowest value of the column",
	"mae":             "mean absolute error on the held-out rows, in the unit of the target",
	"margin":          "memory that the limit adds to the estimate",
	"mean":            "mean of the column",
	"meaning":         "what the setting does",
	"memory":          "highest measured memory of a train action, and its limit; of a tenant, what its running jobs hold",
	"memory limit":    "most memory that the container of the action may use",
	"missing":         "rows without a value in the column",
	"model":           "network with trained weights and a version number",
	"name":            "name of a job, a class, a view or a data set",
	"network":         "layers that the job trains, or their name",
	"outcome":         "how the activation ended",
	"passes on":       "what the stage sends to the next one for each row; as much comes back",
	"peak":            "highest measured memory",
	"peak memory":     "highest measured memory of a train action",
	"picture or rows": "a PNG or JPEG picture, or a file with rows",
	"precision":       "of the rows that the model calls so, the share that is so, from 0 to 1",
	"priority":        "jobs with a higher number go first in the queue",
	"probability":     "how sure the model is, in percent",
	"queue":           "time that the activation waited on the platform",
	"r2":              "share of the variance that the model explains; 1 is best",
	"recall":          "of the rows that are so, the share that the model calls so, from 0 to 1",
	"redis":           "most memory that unfinished jobs may keep in Redis, of the quota --redis-memory",
	"resident":        "memory that the action uses now",
	"result":          "accuracy from 0 to 1, or RMSE, on held-out rows",
	"rmse":            "root of the mean squared error on the held-out rows, in the unit of the target",
	"role":            "what a token allows: read, submit or admin",
	"round":           "the workers train once, then their weights are averaged",
	"rounds":          "a round trains all workers once and averages their weights",
	"row":             "one sample",
	"rows":            "samples of the data set, or of the class",
	"runs":            "activations of the action",
	"sample":          "shape of one row",
	"scale":           "linear, or logarithmic for values of several orders",
	"search":          "words that a line must have, in any field",
	"setting":         "flag of the command that started the server",
	"since":           "time in UTC at which the job was submitted",
	"size":            "bytes of the stored item",
	"smoothing":       "0 shows each value; towards 1, earlier rounds count more",
	"stage":           "part of the network that an action of its own trains, from 1",
	"start":           "time from the start of the job to the start of the activation",
	"started from":    "model or file whose weights the training began with",
	"state":           "where the job is: queued, running, paused, succeeded, failed or canceled",
	"status":          "queued, running, paused, succeeded, failed or canceled; of a request, its HTTP status",
	"tag":             "word that names one version of the model, such as prod",
	"tags":            "words that people gave to the job",
	"tenant":          "user of a server, with jobs, models and data sets of its own",
	"time":            "time from the submit to the end, of one activation, or at which a line was written",
	"timeout":         "OpenWhisk ends the action after this time",
	"top-5 accuracy":  "share of held-out rows whose class is among the five most probable",
	"token":           "secret that signs in; only its name or the start of its hash is kept",
	"train accuracy":  "share of training rows that were right, as each step saw them, from 0 to 1",
	"train loss":      "mean loss of the training rows; lower is better",
	"trained model":   "name and version of the model that the job made",
	"up":              "the parameter or result on the left axis",
	"value":           "what the setting is now, without passwords",
	"wait":            "time of all activations that a stage waited for the other stages of its network",
	"waiting":         "jobs in the queue",
	"weight":          "share of the pool beside other tenants; 1 is usual",
	"weights":         "size of the weights of the stage, or of the layer with gradients and moments",
	"what":            "what was done, or the request",
	"what is done":    "how the column becomes numbers",
	"with":            "tenants that may read the item",
	"workers":         "train actions that run side by side",
}

// view is a report as the page shows it.
type view struct {
	*Report
	Style       template.CSS
	Body        template.HTML // of the whole page
	Learns      string
	Plan        string
	Stopped     string
	State       string
	Tiles       []Tile
	Facts       []string
	FailurePlot []Figure
	Adjusted    []string
	Stages      []string
	Steps       []string
	Notes       []string
	Hints       []string
	Forecasts   []string
	Matrices    []Matrix
	Confusions  []string
	Checksums   []string
	Spec        string
}

// Tile is one figure of the headline.
type Tile struct{ Name, Value, More string }

// Table is a table with its caption; the first cell of a row is its head.
type Table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// WriteFigure writes a plot with its title and its legend, for a page that has Style among its style sheets.
func WriteFigure(w io.Writer, f Figure) error {
	var out bytes.Buffer
	if err := page().ExecuteTemplate(&out, "figure", f); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "write figure", Err: err}
	}
	_, err := io.WriteString(w, terminal.Clean(out.String()))
	return err
}

// FigureOf is a figure of a chart.
func FigureOf(l *plot.Lines, note string) Figure { return *figureOf(l, note) }

// HTML writes the report as one page that needs no other file, no network and no script. spec is the job's file, to be
// shown.
func (r *Report) HTML(w io.Writer, spec []byte) error {
	v := r.view(spec)
	var body bytes.Buffer
	if err := page().ExecuteTemplate(&body, "body", v); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "write report", Job: r.ID, Err: err}
	}
	v.Body = template.HTML(body.String()) //nolint:gosec // a template wrote it, which escapes
	return r.write(w, "page", v)
}

// Section is a part of the page that HTML writes.
type Section string

// The sections of a report.
const (
	SectionSummary  Section = "summary"  // the figures of the headline, the network, the data and the plan
	SectionCauses   Section = "causes"   // why the job failed or did not learn, with commands to run; may be empty
	SectionCurves   Section = "curves"   // loss, accuracy and errors by round or epoch
	SectionRounds   Section = "rounds"   // the table of rounds
	SectionMemory   Section = "memory"   // estimates, limits and peaks of the actions
	SectionStages   Section = "stages"   // the stages of the network; empty for a job without them
	SectionTimeline Section = "timeline" // the activations over time
	SectionDetails  Section = "details"  // adjustments, stages, classes, the plan's reasons, checksums
)

// Sections writes some sections of HTML, for a page that has Style among its style sheets. It computes only those.
func (r *Report) Sections(w io.Writer, names ...Section) error {
	v := r.view(nil)
	for _, name := range names {
		if err := r.write(w, string(name), v); err != nil {
			return err
		}
	}
	return nil
}

// Style is the style sheet of Sections and WriteFigure.
func Style() string { return pageStyle }

// view is the report as templates read it.
func (r *Report) view(spec []byte) view {
	v := view{
		Report: r, Style: template.CSS(pageStyle), Learns: r.learns(), Plan: r.planText(), Stopped: r.record.Stopped,
		State: r.Status.String(),
		Tiles: r.tiles(), Adjusted: r.adjusted(), Stages: r.stages(), Steps: r.steps(),
		Notes: slices.Concat(r.Warnings, r.Troubles.notes()),
		Hints: r.hints(), Matrices: matrix(r.ByClass), Confusions: confusions(r.ByClass),
		Checksums: r.checksums(), Spec: string(spec),
	}
	if r.Failure != nil {
		v.Facts = r.Failure.facts()
	}
	if f := r.failurePlot(); f != nil {
		v.FailurePlot = []Figure{*f}
	}
	if r.Forecast != nil {
		v.Forecasts = r.Forecast.forecastText(r.Duration, r.CostGBs)
	}
	return v
}

// write writes one template.
func (r *Report) write(w io.Writer, name string, v view) error {
	var out bytes.Buffer
	if err := page().ExecuteTemplate(&out, name, v); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "write report", Job: r.ID, Err: err}
	}
	_, err := io.WriteString(w, terminal.Clean(out.String()))
	return err
}

func (r *Report) tiles() []Tile {
	var out []Tile
	if r.Duration > 0 {
		out = append(out, Tile{"time", span(r.Duration), ""})
	}
	if r.CostGBs > 0 {
		more := ""
		if r.EvaluationGBs > 0 {
			more = fmt.Sprintf("and %.2f for evaluations", r.EvaluationGBs)
		}
		out = append(out, Tile{"cost", fmt.Sprintf("%.2f GB-s", r.CostGBs), more})
	}
	if c := r.Use; c != nil {
		more := ""
		if c.Money != nil {
			more = fmt.Sprintf("%.3g at %.3g a GB-s", *c.Money, r.Job.Resources.Price)
		}
		out = append(out, Tile{"cost by use", fmt.Sprintf("%.2f GB-s", c.UsedGBs), more})
	}
	if r.Accuracy != nil {
		out = append(out, Tile{
			"accuracy", fmt.Sprintf("%.4f", *r.Accuracy),
			fmt.Sprintf("best %.4f, round %d", r.Best.Accuracy, r.Best.Round+1),
		})
	}
	if r.Top5 != nil {
		out = append(out, Tile{"top-5 accuracy", fmt.Sprintf("%.4f", *r.Top5), "the class is among the five most probable"})
	}
	if r.F1 != nil {
		out = append(out, Tile{"F1", fmt.Sprintf("%.4f", *r.F1), fmt.Sprintf("micro F1 %.4f", r.MicroF1)})
	}
	if r.R2 != nil {
		out = append(out, Tile{"RMSE", fmt.Sprintf("%.5g", r.RMSE), fmt.Sprintf("MAE %.5g, R2 %.4f", r.MAE, *r.R2)})
	}
	if r.record.Plan.Rounds > 0 {
		out = append(out, Tile{"rounds", fmt.Sprintf("%d of %d", r.done(), r.record.Plan.Rounds), ""})
	}
	for _, a := range r.Actions {
		if a.Task == disdel.TaskTrain && a.Peak > 0 {
			return append(out, r.peakTile())
		}
	}
	return out
}

// peakTile is the highest peak of a train action beside its limit.
func (r *Report) peakTile() Tile {
	var top Action
	for _, a := range r.Actions {
		if a.Task == disdel.TaskTrain && a.Peak > top.Peak {
			top = a
		}
	}
	note := fmt.Sprintf("limit %v", top.Limit)
	if top.Estimate > 0 {
		note += fmt.Sprintf(", estimate %v", top.Estimate)
	}
	return Tile{"peak memory", top.Peak.String(), note}
}

// Curves are the plots of the rounds.
func (v view) Curves() []Figure {
	return present(v.lossPlot(), v.accuracyPlot(), v.errorPlot(), v.epochPlot(), v.stepPlot())
}

// Memory are the plots of the actions' memory.
func (v view) Memory() []Figure { return present(v.actionMemoryPlot(), v.memoryPlot()) }

// Timeline is the Gantt chart.
func (v view) Timeline() []Figure { return present(v.gantt()) }

// ActionTables is the table of actions.
func (v view) ActionTables() []Table {
	return []Table{{"Actions: memory estimated and measured, and time", actionHead, actionRows(v.Actions)}}
}

// mostLayers bounds the table of layers.
const mostLayers = 200

// LayerTables is the estimated memory of a train action by layer; there is none for plans that do not know it. Of a
// very deep network it has the largest layers.
func (v view) LayerTables() []Table {
	var layers []disdel.LayerEstimate
	for _, a := range v.record.Plan.Actions {
		if a.Task == disdel.TaskTrain {
			layers = a.Estimate.Layers
		}
	}
	if len(layers) == 0 {
		return nil
	}
	t := Table{
		Caption: "Memory of a train action by layer, estimated",
		Head:    []string{"LAYER", "KIND", "WEIGHTS", "ACTIVATIONS"},
	}
	sum := func(l disdel.LayerEstimate) disdel.Bytes { return l.ParameterBytes + l.ActivationBytes }
	var least disdel.Bytes
	if len(layers) > mostLayers {
		sizes := make([]disdel.Bytes, len(layers))
		for i, l := range layers {
			sizes[i] = sum(l)
		}
		slices.Sort(sizes)
		least = sizes[len(sizes)-mostLayers]
		t.Caption += fmt.Sprintf("; layers of %v and more of all %d", least, len(layers))
	}
	for _, l := range layers {
		if sum(l) >= least {
			t.Rows = append(t.Rows, []string{l.Name, l.Op, memory(l.ParameterBytes), memory(l.ActivationBytes)})
		}
	}
	return []Table{t}
}

// RoundTables is the table of rounds; there is none before the first one has ended.
func (v view) RoundTables() []Table {
	if len(v.Rounds) == 0 {
		return nil
	}
	return []Table{{"Rounds", roundHead(v.Rounds, v.record.Metric()), roundTable(v.Rounds, v.record.Metric())}}
}

// ClassTables is the evaluation by class; there is none without classes.
func (v view) ClassTables() []Table {
	rows := classTable(v.ByClass, mostActivations)
	if rows == nil {
		return nil
	}
	return []Table{{"Held-out rows by class", classHead, rows}}
}

// ActivationTables is the table of activations.
func (v view) ActivationTables() []Table {
	if len(v.record.Activations) == 0 {
		return nil
	}
	return []Table{v.activationTable()}
}

const mostActivations = 1000

// activationTable is the Gantt chart in figures.
func (r *Report) activationTable() Table {
	list := thin(r.record.Activations, mostActivations)
	t := Table{
		Caption: "Activations",
		Head:    []string{"ACTION", "ROUND", "ATTEMPT", "START", "QUEUE", "COLD", "TIME", "PEAK", "LIMIT", "OUTCOME"},
	}
	if n := len(r.record.Activations); n > len(list) {
		t.Caption = fmt.Sprintf("Activations: %d of %d, at even steps", len(list), n)
	}
	c, _ := r.clock()
	for i := range list {
		a := &list[i]
		start, cold := "-", "-"
		if !a.Start.IsZero() {
			start = span(disdel.Millis(a.Start.Sub(c.start)))
		}
		if a.Cold || a.InitTime > 0 {
			cold = span(a.InitTime)
		}
		t.Rows = append(t.Rows, []string{
			a.Slot().Name(), fmt.Sprint(a.Round + 1), fmt.Sprint(max(1, a.Attempt)), start, span(a.WaitTime), cold,
			span(a.Duration), memory(a.Peak), memory(a.Limits.Memory), words(a.Outcome.String()),
		})
	}
	return t
}

// CreatedText is when the job was submitted.
func (v view) CreatedText() string {
	if v.Created.IsZero() {
		return ""
	}
	return v.Created.UTC().Format(time.DateTime) + " UTC"
}

//go:embed sheet.gohtml
var sheetText string

var sheet = sync.OnceValue(func() *template.Template {
	return template.Must(template.Must(page().Clone()).New("sheet").Parse(sheetText))
})

// Sheet is a page about many jobs, in the style of a report.
type Sheet struct {
	Title   string
	State   string // a word with a colour of its own: succeeded, failed, canceled
	About   string // a line below the title
	Tiles   []Tile
	Notes   []string // sentences
	Figures []Figure
	Tables  []Table
}

// GanttFigure is a chart of who did what when, with the parts' names that its legend has.
func GanttFigure(g *plot.Gantt, note string, legend []plot.Key) Figure {
	return Figure{Title: g.Title, Note: note, SVG: trusted(g.SVG()), Legend: slices.Clone(legend)}
}

// HTML writes the sheet as one page that needs no other file, no network and no script.
func (s Sheet) HTML(w io.Writer) error {
	var out bytes.Buffer
	if err := sheet().Execute(&out, struct {
		Sheet
		Style template.CSS
	}{s, template.CSS(pageStyle)}); err != nil {
		return &disdel.Error{Kind: disdel.Internal, Op: "write page", Err: err}
	}
	_, err := io.WriteString(w, terminal.Clean(out.String()))
	return err
}
