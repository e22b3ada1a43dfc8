package modelstore

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/disdel/disdel"
)

// What no description has: bounds of its numbers, so that no product of them overflows.
const (
	largestDescription = 16 << 20 // bytes
	largestInput       = 1 << 40  // values of a sample
	largestClasses     = 1 << 24
)

var (
	nameForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	})
	sumForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	})
	keyForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^models/([a-z0-9][-a-z0-9]*)/v(\d{5,9})\.json$`)
	})
)

// readDescription reads a description. It returns Conflict for one of another version of disdel. It returns Corrupt for
// one that Commit could not have written under this name and version, because storage may be shared and the description
// decides what runs. It does not build the network.
func readDescription(name string, version int, data []byte) (Model, error) {
	var m Model
	if len(data) > largestDescription {
		return m, broken(name, version, nil, fmt.Sprintf("it has %v", disdel.Bytes(len(data))))
	}
	err := json.Unmarshal(data, &m) // goes on behind a field of another type
	if m.APIVersion != "" {
		if err := disdel.CheckVersion("read model", fmt.Sprintf("%s:v%d", name, version), m.APIVersion); err != nil {
			return Model{}, err
		}
	}
	if err != nil {
		return Model{}, broken(name, version, err)
	}
	if faults := m.faults(name, version); len(faults) > 0 {
		return Model{}, broken(name, version, nil, faults...)
	}
	return m, nil
}

func broken(name string, version int, cause error, why ...string) error {
	msg := fmt.Sprintf("the description of %s:v%d is damaged (%s)", name, version, descriptionPath(name, version))
	if len(why) > 0 {
		msg += ": " + strings.Join(why, "; ")
	}
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read model", Msg: msg, Err: cause,
		Hint: fmt.Sprintf("use another version of the model (disdel model list), or remove this one: "+
			"disdel model remove %s:v%d", name, version),
	}
}

// faults lists what is wrong with the description of a name and version.
func (m *Model) faults(name string, version int) (list []string) {
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	fault(m.APIVersion == "", "it has no apiVersion")
	fault(m.Name != name || m.Version != version, "it is that of %.80q, version %d", m.Name, m.Version)
	folder := path.Join("weights", name)
	fault(path.Dir(m.Path) != folder || path.Clean(m.Path) != m.Path || path.Ext(m.Path) != ".safetensors" ||
		strings.Contains(m.Path, "\\"),
		"its weights are %.120q, not in %s", m.Path, folder)
	fault(!sumForm().MatchString(m.Checksum), "its weights have checksum %.80q", m.Checksum)
	fault(m.Size < 0, "its weights have %d bytes", m.Size)
	fault(!sides(m.Network.Input), "network.input is %v", m.Network.Input[:min(len(m.Network.Input), 4)])
	fault(m.Network.Classes < 1 || m.Network.Classes > largestClasses, "network.classes is %d", m.Network.Classes)
	fault(len(m.Labels) > max(m.Network.Classes, 0), "%d labels for %d classes", len(m.Labels), m.Network.Classes)
	fault(!finite(m.Accuracy) || m.Accuracy < 0 || m.Accuracy > 1, "accuracy is %g", m.Accuracy)
	fault(!finite(m.Loss), "loss is %g", m.Loss)
	fault(!finite(m.RMSE) || !finite(m.AUC) || !finite(m.MAE), "rmse is %g, auc %g and mae %g", m.RMSE, m.AUC, m.MAE)
	fault(m.R2 != nil && !finite(*m.R2) || m.F1 != nil && !finite(*m.F1) || !finite(m.MicroF1), "r2 or f1 is no number")
	fault(m.Top5 != nil && !(*m.Top5 >= 0 && *m.Top5 <= 1), "top5 is no share")
	n := len(m.Network.Targets)
	fault(n > 0 && n != m.Network.Classes, "network.targets has %d of %d outputs", n, m.Network.Classes)
	fault(m.Epochs < 0 || m.Workers < 0 || m.Data.Train < 0 || m.Data.HeldOut < 0, "a count is below 0")
	if r := m.Inputs; r != nil {
		fault(!finite(float64(r.Low)) || !finite(float64(r.High)) || r.Low > r.High, "inputs go from %g to %g", r.Low, r.High)
	}
	return list
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// sides says whether a sample can have this shape.
func sides(shape []int) bool {
	n := 1
	for _, v := range shape {
		if v < 1 || v > largestInput/n {
			return false
		}
		n *= v
	}
	return len(shape) > 0 && len(shape) <= 4
}
