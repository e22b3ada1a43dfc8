package report

import (
	"bytes"
	_ "embed" // of the page, its style and the sheet
	"fmt"
	"html/template"
	"io"
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
		"meaning":  Meaning,
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

// Meaning is the definition of a label with its unit, "" for a label that explains itself.
func Meaning(label string) string { return meanings[strings.ToLower(label)] }

// meanings explains the names of tiles and columns.
var meanings = map[string]string{
	"time":           "time from the submit to the end, or of one activation",
	"cost":           "GB-s: memory limit of the train and aggregate actions times the job's time",
	"cost by use":    "GB-s: memory limit times duration of every activation, as a platform bills it",
	"accuracy":       "share of the held-out rows that the model classifies correctly",
	"rmse":           "root of the mean squared error on the held-out rows, in the unit of the target",
	"rounds":         "a round trains all workers once and averages their weights",
	"peak memory":    "highest memory of a train action, measured",
	"memory":         "highest measured memory of a train action, and its limit",
	"runs":           "activations of the action",
	"failed":         "activations of the action that failed",
	"estimate":       "expected peak, computed before the job began",
	"peak":           "highest measured memory",
	"limit":          "memory limit of the action",
	"error":          "estimate over peak, in percent of the peak",
	"longest":        "longest activation",
	"timeout":        "OpenWhisk ends the action after this time",
	"train loss":     "mean loss of the training rows",
	"loss":           "mean loss of the held-out rows",
	"train accuracy": "share of training rows that were right, as each step saw them",
	"left out":       "workers without whose weights the mean was taken",
	"attempt":        "a failed activation is repeated as the next attempt",
	"start":          "from the start of the job",
	"queue":          "time that the activation waited on the platform",
	"cold":           "time that a new container took to start; -: the container was warm",
	"outcome":        "how the activation ended",
}

// view is a report as the page shows it.
type view struct {
	*Report
	Style       template.CSS
	Learns      string
	Plan        string
	Stopped     string
	State       string
	Tiles       []Tile
	Facts       []string
	FailurePlot []Figure
	Adjusted    []string
	Stages      []string
	Layers      []string // of the stages that train one network
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
	return r.write(w, "page", r.view(spec))
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
		Tiles: r.tiles(), Adjusted: r.adjusted(), Stages: r.stages(), Layers: r.layers(), Steps: r.steps(),
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

// RoundTables is the table of rounds; there is none before the first one has ended.
func (v view) RoundTables() []Table {
	if len(v.Rounds) == 0 {
		return nil
	}
	return []Table{{"Rounds", roundHead(v.Rounds), roundTable(v.Rounds)}}
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
