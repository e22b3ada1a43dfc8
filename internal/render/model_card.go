package render

import (
	"fmt"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/modelstore"
)

// ModelCard writes README.md of a model for a hub: data, figures and training. Its owner fills in the licence.
func ModelCard(m *modelstore.Model) string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "| %s | %s |\n", name, strings.ReplaceAll(fmt.Sprintf(format, args...), "|", "\\|"))
	}
	out.WriteString("---\nlibrary_name: transformers\n# license: the owner of the model states it here\n---\n\n")
	fmt.Fprintf(&out, "# %s\n\n", m.Name)
	if m.Job == "" {
		out.WriteString("disdel imported this model and did not train it.\n\n")
	} else {
		fmt.Fprintf(&out, "disdel trained this model in the job %s.\n\n", m.Job)
	}
	out.WriteString("| | |\n|---|---|\n")
	line("version", "%s, %s", m.Ref(), m.Created.Format("2006-01-02"))
	line("weights", "%v, %s", m.Size, m.Checksum)
	if m.Network.Init.Weights != "" {
		line("started from", "%s", m.Network.Init.Weights)
	}
	if m.Job != "" {
		line("data", "%s: %d training rows, %d held out", m.Data.Name, m.Data.Train, m.Data.HeldOut)
		line("training", "%s with %s", disdel.Counted(m.Epochs, "epoch"), disdel.Counted(m.Workers, "worker"))
	}
	if m.Job != "" && m.Data.HeldOut > 0 {
		line("held-out loss", "%.4g", m.Loss)
		if !m.Data.Numbers() {
			line("held-out accuracy", "%.2f %%", 100*m.Accuracy)
		}
	}
	for _, warning := range m.Warnings {
		line("warning", "%s", warning)
	}
	return out.String()
}
