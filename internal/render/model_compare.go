package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/terminal"
)

// Comparison is trained models beside each other, as -o json shows them.
type Comparison struct {
	Models []modelstore.Model `json:"models"`
}

// PrintComparison is a column for each model, and a line for each of their figures.
func PrintComparison(w io.Writer, c Comparison) {
	var rows [][]string
	for _, line := range []struct {
		name string
		text func(m *modelstore.Model) string
	}{
		{"MODEL", func(m *modelstore.Model) string { return m.Ref() }},
		{"tags", func(m *modelstore.Model) string { return strings.Join(m.Tags, " ") }},
		{"network", func(m *modelstore.Model) string { return networkName(m.Network) }},
		{"data", func(m *modelstore.Model) string { return m.Data.Name }},
		{"accuracy", func(m *modelstore.Model) string {
			return Decimals(m.Accuracy, evaluated(m) && m.Network.Classes > 1)
		}},
		{"loss", func(m *modelstore.Model) string { return Decimals(m.Loss, evaluated(m)) }},
		{"learned", func(m *modelstore.Model) string { return learnedText(m.Learned) }},
		{"epochs", func(m *modelstore.Model) string { return fmt.Sprint(m.Epochs) }},
		{"workers", func(m *modelstore.Model) string { return fmt.Sprint(m.Workers) }},
		{"size", func(m *modelstore.Model) string { return m.Size.String() }},
		{"created", func(m *modelstore.Model) string { return m.Created.Local().Format("2006-01-02 15:04") }},
		{"job", func(m *modelstore.Model) string { return string(m.Job) }},
	} {
		row := []string{line.name}
		for i := range c.Models {
			text := terminal.OneLine(line.text(&c.Models[i]))
			if text == "" {
				text = "-"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	terminal.Table(w, rows...)
}
