package report_test

import (
	"strings"
	"testing"

	"github.com/disdel/disdel"
)

// counted is a record whose last evaluation was counted by class.
func counted(t *testing.T, classes int, names ...string) *disdel.Record {
	t.Helper()
	r := load(t, "succeeded")
	r.ByClass = disdel.NewByClass(classes)
	for label := range classes {
		r.ByClass.Add([]int32{int32(label), int32(label)}, []int32{int32(label), int32((label + 1) % 3)})
	}
	r.ByClass.Names = names
	return r
}

// Every form of the report tells how each class is told, and which is taken for which.
func TestClassesAreTold(t *testing.T) {
	r := counted(t, 3, "cat", "<b>dog</b>")
	for form, got := range map[string]string{"text": text(t, r), "markdown": markdown(t, r), "page": html(t, r)} {
		flat := strings.Join(strings.Fields(strings.NewReplacer("|", " ", "\\", "").Replace(got)), " ")
		class, precision := "CLASS", "PRECISION"
		if form == "page" {
			class, precision = ">Class<", ">Precision<"
		}
		for _, want := range []string{class, precision, "1 of 2 rows of 0 (cat) taken for 1 ("} {
			if !strings.Contains(flat, want) {
				t.Errorf("%s: no %q in\n%s", form, want, got)
			}
		}
		if form != "text" && strings.Contains(got, "<b>dog") {
			t.Errorf("%s: a name is markup", form)
		}
	}
	if got := strings.Join(strings.Fields(text(t, r)), " "); !strings.Contains(got, "0 cat 2 0.5000 0.5000 0.5000") {
		t.Errorf("the figures of a class: %s", got)
	}
	page := html(t, r)
	if !strings.Contains(page, `<td class="share5 right">1</td><td class="share5">1</td><td class="share0">0</td>`) {
		t.Error("no confusion matrix")
	}
	elements(t, strictly(page))
	if old := load(t, "succeeded"); strings.Contains(html(t, old), "Held-out rows by class") ||
		strings.Contains(text(t, old), "CLASS") {
		t.Error("classes of a record that knows none")
	}
}

// Of many classes text has the worst, a page a table and no matrix; a damaged record has what can be read.
func TestManyClasses(t *testing.T) {
	r := counted(t, 120)
	r.ByClass.Add([]int32{77}, []int32{5})
	got := text(t, r)
	if !strings.Contains(got, "the 20 worst of 120 classes") || strings.Contains(got, "taken for") {
		t.Errorf("%s", got)
	}
	if page := html(t, r); strings.Contains(page, `class="matrix"`) || !strings.Contains(page, "119") {
		t.Error("a page of many classes")
	}
	r = counted(t, 3)
	r.ByClass.Confusion[1] = nil
	if page := html(t, r); strings.Contains(page, `class="matrix"`) || !strings.Contains(page, "Held-out rows by class") {
		t.Error("a matrix with a hole")
	}
	r.ByClass.Given = nil
	for form, got := range map[string]string{"text": text(t, r), "page": html(t, r)} {
		if strings.Contains(got, "PRECISION") {
			t.Errorf("%s: classes of which little is known", form)
		}
	}
}
