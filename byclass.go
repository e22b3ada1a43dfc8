package disdel

// MostConfused is up to how many classes it is counted which was taken for which.
const MostConfused = 100

// ByClass counts the rows of an evaluation by their label and by the class that the model gave them, all of them by
// class from 0.
type ByClass struct {
	Rows  []int `json:"rows"`  // by label
	Given []int `json:"given"` // by the class that they were given
	Right []int `json:"right"` // of those whose label it is
	// Confusion is by both, [labels classes]; nil of more than MostConfused classes.
	Confusion [][]int  `json:"confusion,omitempty"`
	Names     []string `json:"names,omitempty"` // where the data set has them
}

// NewByClass has counted no rows yet.
func NewByClass(classes int) *ByClass {
	b := &ByClass{Rows: make([]int, classes), Given: make([]int, classes), Right: make([]int, classes)}
	if classes <= MostConfused {
		b.Confusion = make([][]int, classes)
		for i := range b.Confusion {
			b.Confusion[i] = make([]int, classes)
		}
	}
	return b
}

// Add counts rows. A row whose label or class is none of those that are counted by is left out.
func (b *ByClass) Add(labels, given []int32) {
	for i, label := range labels[:min(len(labels), len(given))] {
		label, class := int(label), int(given[i])
		if label < 0 || label >= len(b.Rows) || class < 0 || class >= len(b.Given) {
			continue
		}
		b.Rows[label]++
		b.Given[class]++
		if label == class {
			b.Right[class]++
		}
		if b.Confusion != nil {
			b.Confusion[label][class]++
		}
	}
}

// Figures are those of a class.
func (b *ByClass) Figures(class int) ClassFigures {
	return NewClassFigures(b.Rows[class], b.Given[class], b.Right[class])
}

// Name is the class' name, "" where it has none.
func (b *ByClass) Name(class int) string {
	if class < len(b.Names) {
		return b.Names[class]
	}
	return ""
}

// ClassFigures is how well a model tells a class. A share of no rows is 0.
type ClassFigures struct {
	Rows      int     `json:"rows"`
	Precision float64 `json:"precision"` // of the rows that were given the class, those that have it
	Recall    float64 `json:"recall"`    // of the rows that have the class, those that were given it
	F1        float64 `json:"f1"`        // the harmonic mean of both
}

// NewClassFigures works them out of the rows that have a class, those that were given it, and those that are both.
func NewClassFigures(rows, given, both int) ClassFigures {
	share := func(a, b int) float64 { return float64(a) / float64(max(1, b)) }
	return ClassFigures{rows, share(both, given), share(both, rows), share(2*both, given+rows)}
}
