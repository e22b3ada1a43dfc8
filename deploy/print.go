package deploy

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes a plan as a table of what is done to what, with every field that differs below its entity.
func (p *Plan) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range p.Changes {
		fmt.Fprintf(t, "%s\t%s\t%s\n", c.Change, c.What, c.Name)
	}
	t.Flush() //nolint:errcheck // whoever gave w looks at it
	for _, c := range p.Changes {
		for _, f := range c.Fields {
			from := f.From
			if from == "" {
				from = "nothing"
			}
			fmt.Fprintf(w, "%s: %s: %s -> %s\n", c.Name, f.Name, from, f.To)
		}
	}
}

// Says is a plan in a sentence: what is to be done, or what was.
func (p *Plan) Says(done bool) string {
	count := map[string]int{}
	for _, c := range p.Changes {
		count[c.Change]++
	}
	if p.down && len(p.Changes) == 0 {
		return fmt.Sprintf("package %s is not at %s: there is nothing to remove", p.Package, p.Host)
	}
	if p.down && p.Changed() == 0 {
		return fmt.Sprintf("package %s at %s has no action of the manifest, and keeps %s that the manifest does not name",
			p.Package, p.Host, countOfActions(count[Other]))
	}
	if p.Changed() == 0 {
		return fmt.Sprintf("package %s at %s is as the manifest has it", p.Package, p.Host)
	}
	form := "package %s at %s: %d to create, %d to update, %d to remove, %d as they are"
	if done {
		form = "package %s at %s: %d created, %d updated, %d removed, %d as they were"
	}
	return fmt.Sprintf(form, p.Package, p.Host, count[Create], count[Update], count[Remove], count[Keep]+count[Other])
}

// countOfActions is a number of actions in words.
func countOfActions(actions int) string {
	if actions == 1 {
		return "1 action"
	}
	return fmt.Sprintf("%d actions", actions)
}
