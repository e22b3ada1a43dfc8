package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// cellGap is the space between two columns.
const cellGap = 2

// Table writes aligned columns; a row is a list of cells. On a terminal it cuts lines at the width of the page.
func Table(w io.Writer, rows ...[]string) {
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, cellGap, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cleanCells(r), "\t"), "\t"))
	}
	t.Flush() //nolint:errcheck // into memory
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = Cut(lines[i], columnsOf(w))
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

// cleanCells removes line breaks and control characters from the cells of a row.
func cleanCells(row []string) []string {
	cells := make([]string, len(row))
	for i, c := range row {
		cells[i] = OneLine(c)
	}
	return cells
}

// columnsOf is the width of a page, 0 for any width.
func columnsOf(w io.Writer) int {
	if p, ok := w.(*Page); ok {
		return p.Columns
	}
	return 0
}

// Cut shortens a line to a number of columns and marks the cut; 0 means any number.
func Cut(line string, columns int) string {
	if columns <= 0 || utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}

// Fitted removes the columns named in drop, one after another, until the table fits the page. The first row has the
// names. -o wide shows all columns.
func Fitted(w io.Writer, rows [][]string, drop ...string) [][]string {
	for _, name := range drop {
		i := slices.Index(rows[0], name)
		if tableWidth(rows) <= columnsOf(w) || columnsOf(w) == 0 {
			return rows
		}
		if i < 0 {
			continue
		}
		for r := range rows {
			rows[r] = slices.Delete(slices.Clone(rows[r]), i, i+1)
		}
	}
	return rows
}

// tableWidth is the width of a table in columns of a terminal.
func tableWidth(rows [][]string) int {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(Clean(c)))
		}
	}
	width := cellGap * (len(widths) - 1)
	for _, n := range widths {
		width += n
	}
	return width
}

// shortJob is the length of the part of a job's id that has its time to the millisecond. Every command takes the start
// of an id.
const shortJob = len("job-01m7zad0m3")

// ShortIDs shortens the ids in the first column if the table is wider than the page and the short ids stay distinct.
func ShortIDs(w io.Writer, rows [][]string) [][]string {
	if columnsOf(w) == 0 || tableWidth(rows) <= columnsOf(w) {
		return rows
	}
	out, seen := [][]string{rows[0]}, map[string]bool{}
	for _, r := range rows[1:] {
		short := r[0][:min(len(r[0]), shortJob)]
		if seen[short] {
			return rows
		}
		seen[short] = true
		out = append(out, append([]string{short}, r[1:]...))
	}
	return out
}

// Program is the command that runs this program again: its name, or go run if go run built it.
func Program() string {
	path, err := os.Executable()
	if err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/disdel"
	}
	return os.Args[0]
}
