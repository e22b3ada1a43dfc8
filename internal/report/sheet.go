package report

import (
	"bytes"
	_ "embed" // of the sheet
	"html/template"
	"io"
	"slices"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/plot"
	"github.com/disdel/disdel/internal/terminal"
)

//go:embed sheet.gohtml
var sheetText string

var sheet = sync.OnceValue(func() *template.Template {
	return template.Must(template.Must(page().Clone()).New("sheet").Parse(sheetText))
})

// Sheet is a page about many jobs, in the style of a report's.
type Sheet struct {
	Title   string
	State   string // a word with a colour of its own: succeeded, failed, canceled
	About   string // a line below the title
	Tiles   []Tile
	Notes   []string // sentences
	Figures []Figure
	Tables  []Table
}

// LinesFigure is a chart of lines with its legend.
func LinesFigure(l *plot.Lines, note string) Figure { return *figureOf(l, note) }

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
