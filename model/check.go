package model

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/spelling"
)

// CheckLayers lists every fault of a job file's layers; path is where the list stands ("model.layers").
func CheckLayers(path string, layers []disdel.Layer) []disdel.Fault {
	return checkLayers(layers, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) })
}

// checkLayers is CheckLayers with a path of the caller's choice for each layer.
func checkLayers(layers []disdel.Layer, path func(i int) string) []disdel.Fault {
	c := layerChecker{used: map[string]bool{}, before: "input", known: map[string]bool{"input": true}}
	for i := range layers {
		c.layer(path(i), i, layers)
	}
	if len(c.faults) == 0 {
		c.unused(path, layers)
	}
	return fewFaults(c.faults)
}

// OwnCode is the next step of a message about a layer, a loss or an operator that disdel does not have.
const OwnCode = "it runs as your own Python code: model.python, docs/reference/python-programs.md"

// mostFaults is how many faults of a list of layers are shown: who has made that many has made one of them again and
// again.
const mostFaults = 50

// fewFaults cuts a list of faults and says how many more there are.
func fewFaults(list []disdel.Fault) []disdel.Fault {
	more := len(list) - mostFaults
	if more <= 0 {
		return list
	}
	list = list[:mostFaults:mostFaults]
	last := list[mostFaults-1]
	return append(list, disdel.Fault{
		Path: last.Path,
		Msg:  fmt.Sprintf("and %d more faults in the layers from here on", more),
	})
}

// layerForm is the form of names: they become keys of stored weights. It is made when it is first needed, which the
// start of a container does not wait for.
var layerForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_./]{0,99}$`)
})

type layerChecker struct {
	faults []disdel.Fault
	known  map[string]bool // names so far, the data's among them
	order  []string        // the same but for the data's, for those that were misspelt
	before string          // name of the layer before
	used   map[string]bool // names that a later layer takes
}

func (c *layerChecker) fault(path, hint, format string, args ...any) {
	c.faults = append(c.faults, disdel.Fault{Path: path, Msg: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *layerChecker) layer(at string, i int, layers []disdel.Layer) {
	l := &layers[i]
	kind := layerKindOf(l.Kind)
	switch {
	case kind != nil:
		c.names(at+"."+l.Kind, i, kind, l)
		c.options(at+"."+l.Kind, kind, l)
		c.values(at+"."+l.Kind, l)
	default:
		hint := "kinds: " + strings.Join(LayerKinds(), ", ") + "; else " + OwnCode
		if near := spelling.Closest(l.Kind, LayerKinds()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.fault(at, hint, "there is no kind of layer %q", l.Kind)
	}
	if i < len(layers)-1 && (l.Kind == "softmax" || l.Activation == "softmax") {
		c.fault(at, "", "softmax may only come last")
	}
	c.before = layerName(i, l)
	c.known[c.before] = true
	c.order = append(c.order, c.before)
}

// names checks what a layer is called and whose output it takes.
func (c *layerChecker) names(at string, i int, kind *layerKind, l *disdel.Layer) {
	switch name := layerName(i, l); {
	case !layerForm().MatchString(name):
		c.fault(at+".name", "", "a name has letters, digits and _ - . /, at most 100, the first a letter, digit or _")
	case c.known[name]:
		c.fault(at+".name", "", "the name %q is taken", name)
	}
	if len(l.From) == 0 {
		c.used[c.before] = true
	}
	for _, from := range l.From {
		if c.used[from] = true; c.known[from] {
			continue
		}
		hint := ""
		if near := c.nearest(from); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.fault(at+".from", hint, "there is no layer %q before this one", from)
	}
	switch {
	case l.Kind == "input" && i > 0:
		c.fault(at, "", "input comes first")
	case kind.many && len(l.From) < 2:
		c.fault(at+".from", "write from: [a, b] with the names of layers", "%s needs two layers or more", l.Kind)
	case !kind.many && len(l.From) > 1:
		c.fault(at+".from", "join them with add or concat", "%s takes one layer, not %d", l.Kind, len(l.From))
	}
}

// nearest is the name that was probably meant. It is looked for as long as faults are shown, and among the layers just
// before.
func (c *layerChecker) nearest(name string) string {
	if len(c.faults) >= mostFaults || len(name) > maxName {
		return ""
	}
	return spelling.Closest(name, append([]string{"input"}, c.order[max(0, len(c.order)-nearby):]...))
}

const (
	maxName = 100  // letters of a layer's name
	nearby  = 1000 // layers that a misspelt name is held against
)

// optionsOf says which options a layer gives, by their names in the file, in the order of disdel.Layer.
func optionsOf(l *disdel.Layer) (names []string, is map[string]bool) {
	is = map[string]bool{
		"kernel": l.KernelHW != [2]int{}, "stride": l.StrideHW != [2]int{}, "dilation": l.DilationHW != [2]int{},
		"size": l.SizeHW != [2]int{}, "padding": l.SamePad || l.PaddingAt != [4]int{},
	}
	v := reflect.ValueOf(*l)
	for i := range v.NumField() {
		option, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if option == "-" || option == "name" || option == "from" {
			continue
		}
		names = append(names, option)
		is[option] = is[option] || !v.Field(i).IsZero()
	}
	return names, is
}

// options checks that a layer gives what its kind needs and nothing that it does not take.
func (c *layerChecker) options(at string, kind *layerKind, l *disdel.Layer) {
	names, is := optionsOf(l)
	for _, option := range names {
		switch {
		case is[option] && !slices.Contains(words(kind.options), option):
			c.fault(at+"."+option, "", "%s takes no %s", l.Kind, option)
		case !is[option] && slices.Contains(words(kind.required), option):
			c.fault(at+"."+option, "", "%s needs %s", l.Kind, option)
		}
	}
}

// values checks the numbers of a layer, whoever wrote them.
func (c *layerChecker) values(at string, l *disdel.Layer) {
	c.minimum(at+".shape", 1, l.Shape...)
	c.minimum(at+".units", 0, l.Units)
	c.minimum(at+".filters", 0, l.Filters)
	c.window(at+".kernel", l.Kernel, l.KernelHW)
	c.window(at+".size", l.Size, l.SizeHW)
	c.window(at+".stride", l.Stride, l.StrideHW)
	c.minimum(at+".padding", 0, append(l.PaddingAt[:], l.Padding)...)
	c.window(at+".dilation", l.Dilation, l.DilationHW)
	c.minimum(at+".groups", 0, l.Groups)
	c.minimum(at+".first", 0, l.First)
	c.minimum(at+".vocabulary", 0, l.Vocabulary)
	c.minimum(at+".width", 0, l.Width)
	c.minimum(at+".hidden", 0, l.Hidden)
	c.minimum(at+".heads", 0, l.Heads)
	c.minimum(at+".kvHeads", 0, l.KVHeads)
	if takes := []string{"", TakeMean, TakeFirst, TakeLast, TakeEnds}; !slices.Contains(takes, l.Take) {
		c.fault(at+".take", "mean, first, last or ends", "there is no position %q", l.Take)
	}
	if len(l.Shape) > 0 && slices.Min(l.Shape) > 0 && tooLarge(l.Shape) {
		c.fault(at+".shape", "", "%v is beyond any machine", l.Shape)
	}
	if n := len(l.Shape); n != 0 && n != 1 && n != 3 {
		c.fault(at+".shape", "", "must be [units] or [channels, height, width]")
	}
	if !(l.Eps >= 0) {
		c.fault(at+".eps", "", "must be above 0")
	}
	if !(l.Momentum >= 0 && l.Momentum <= 1) {
		c.fault(at+".momentum", "", "must be above 0 and at most 1")
	}
	if !(l.Rate >= 0 && l.Rate < 1) {
		c.fault(at+".rate", "", "must be at least 0 and below 1")
	}
	if !(l.Slope >= 0 && l.Slope <= 1) {
		c.fault(at+".slope", "", "must be above 0 and at most 1")
	}
	switch {
	case l.Theta != 0 && !(l.Theta > 1 && l.Theta <= LargestTheta):
		c.fault(at+".theta", "", "must be above 1 and at most %g", float64(LargestTheta))
	case l.Theta != 0 && !isSet(l.Rotary):
		c.fault(at+".theta", "write rotary: true, too", "only rotary positions have it")
	}
	if l.Activation != "" && activationOf(l.Activation) == nil {
		c.fault(at+".activation", "", "there is no activation %q", l.Activation)
	}
}

func (c *layerChecker) window(path string, one int, two [2]int) {
	if two != [2]int{} {
		c.minimum(path, 1, two[:]...)
		return
	}
	c.minimum(path, 0, one)
}

func (c *layerChecker) minimum(path string, minimum int, values ...int) {
	if len(values) == 0 || slices.Min(values) >= minimum {
		return
	}
	if minimum == 0 {
		c.fault(path, "", "must not be negative")
		return
	}
	c.fault(path, "", "must be at least %d", minimum)
}

// unused finds outputs that lead nowhere: somebody forgot a from.
func (c *layerChecker) unused(path func(i int) string, layers []disdel.Layer) {
	for i := range layers[:max(0, len(layers)-1)] {
		if name := layerName(i, &layers[i]); !c.used[name] {
			c.fault(path(i), fmt.Sprintf("name %q in the from of a later layer, or take it out", name),
				"nothing uses its output")
		}
	}
}
