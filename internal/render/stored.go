package render

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service"
)

// PrintStored prints a table of what takes space.
func PrintStored(w io.Writer, items []service.StoredItem, now time.Time) {
	rows, kept := [][]string{{"KIND", "NAME", "SIZE", "AGE", "KEPT"}}, false
	for _, item := range items {
		age := "-"
		if !item.Written.IsZero() {
			age = AgeText(now.Sub(item.Written))
		}
		name := path.Join(item.Tenant, item.Name)
		if item.Job != "" {
			name += " (" + string(item.Job) + ")"
		}
		rows = append(rows, []string{string(item.Kind), name, known(item.Size), age, cmp.Or(item.Kept, "-")})
		kept = kept || item.Kept != ""
	}
	if !kept {
		for i := range rows {
			rows[i] = rows[i][:len(rows[i])-1]
		}
	}
	terminal.Table(w, rows...)
}

// PrintStoredKinds prints the size of each kind, and of everything.
func PrintStoredKinds(w io.Writer, items []service.StoredItem) {
	var kinds []service.StoredKind
	sizes, all := map[service.StoredKind]disdel.Bytes{}, disdel.Bytes(0)
	for _, item := range items {
		if !slices.Contains(kinds, item.Kind) {
			kinds = append(kinds, item.Kind)
		}
		sizes[item.Kind], all = sizes[item.Kind]+item.Size, all+item.Size
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, kind := range kinds {
		rows = append(rows, []string{string(kind), sizes[kind].String()})
	}
	terminal.Table(w, append(rows, []string{"total", all.String()})...)
}
