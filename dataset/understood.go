package dataset

// Understood is what a reader took files for, told to who added them: that it can be read does not say that it is what
// was meant.
type Understood struct {
	Kind    string      `json:"kind"`             // "CSV, separated by commas, with a header"
	Values  string      `json:"values"`           // how they are kept: "bytes, as 0..1 from 0..255"
	Rows    int         `json:"rows"`             // to learn from
	HeldOut int         `json:"heldOut"`          // of files of their own
	Classes []ClassRows `json:"classes"`          // of the rows to learn from, by class
	Example Example     `json:"example"`          // the first row
	Passed  []string    `json:"passed,omitempty"` // what was left out, and why
	Notes   []string    `json:"notes,omitempty"`  // what is allowed and perhaps not meant
}

// ClassRows is how many rows a class has.
type ClassRows struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// Example is a row as its file has it.
type Example struct {
	Place  string   `json:"place"` // "line 2", "cat/1.png", "row 0"
	Class  string   `json:"class"`
	Values []string `json:"values"` // the first ones
	More   int      `json:"more"`   // values besides
}

// Column is a column of a table: what one value of a row comes from, or for a category several.
type Column struct {
	Name    string     `json:"name"`
	Kind    ColumnKind `json:"kind"`
	Missing int        `json:"missing,omitempty"` // rows without it

	// Of a number, over the rows to learn from. A value is kept as (number - Shift) x Factor; a missing one as the mean.
	Low       float64 `json:"low,omitempty"`
	High      float64 `json:"high,omitempty"`
	Mean      float64 `json:"mean,omitempty"`
	Deviation float64 `json:"deviation,omitempty"`
	Shift     float64 `json:"shift,omitempty"`
	Factor    float64 `json:"factor,omitempty"`

	// Of a category: a value each, 1 for the row's own and 0 for the others; all 0 for a row without it.
	Categories []string `json:"categories,omitempty"`
}

// ColumnKind is what a column holds.
type ColumnKind string

// The kinds of columns.
const (
	ColumnNumber   ColumnKind = "number"
	ColumnCategory ColumnKind = "category"
)

// Width is how many values of a row the column comes to.
func (c *Column) Width() int {
	if c.Kind == ColumnCategory {
		return len(c.Categories)
	}
	return 1
}

// Doubts says what of the classes is allowed and yet probably not meant, as Doubts does.
func (u *Understood) Doubts(m *Manifest) (list []string) {
	rows := make([]int, m.Classes)
	for k := range min(len(u.Classes), m.Classes) {
		rows[k] = u.Classes[k].Rows
	}
	if w := classDoubts(rows, len(m.ClassNames) == 0); w != "" {
		list = append(list, w)
	}
	if info := m.Info(usualSplit); info.HeldOut == 0 {
		list = append(list, noneHeldOut)
	}
	return append(list, u.Notes...)
}
