package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/dataset/dense"
	"github.com/disdel/disdel/internal/client"
	"github.com/disdel/disdel/internal/export"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service/infer"
)

// Bounds of what a browser sends and gets: these fit the memory that a page holds. Larger files take the program
// disdel.
const (
	mostTried    = 1 << 20   // bytes of rows to try a model on
	mostPixels   = 1 << 20   // of a picture
	mostAnswers  = 100       // rows
	mostTable    = 4 << 20   // bytes of an uploaded table
	mostExported = 256 << 20 // bytes of exported weights
)

// oneModel is the page of a model.
type oneModel struct {
	trained
	Address string
	Own     bool          // the tenant may change it
	Start   string        // what its training started from: a model, or the checksum of a file; "": nothing to tell
	Linked  bool          // Start is a model that the tenant may see
	Next    []string      // models whose training started from it, newest first
	Drawn   []int         // width and height of a picture that it takes; nil: it takes other rows
	Refused *disdel.Error // why there is no answer; nil: nobody asked, or there is one
	Answers []answer
	Notes   []string
}

// answer is what the model says of one row.
type answer struct {
	Row         int // from 1
	What, Share string
}

func modelAddress(ref string) string { return Root + "models/" + url.PathEscape(ref) }

func modelPage(v *visit) error {
	page, err := v.model()
	if err != nil {
		return err
	}
	return page.write(v, http.StatusOK)
}

// model is the page of the model that the address names, with the tags of the version.
func (v *visit) model() (*oneModel, error) {
	found, err := v.s.FindModel(v.Context(), v.PathValue("model"))
	if err != nil {
		return nil, err
	}
	m := found.Model
	// Damaged versions have no tags.
	versions, _ := found.Store.Versions(v.Context(), strings.TrimPrefix(m.Name, found.Owner+"/"))
	if i := slices.IndexFunc(versions, func(o modelstore.Model) bool { return o.Version == m.Version }); i >= 0 {
		m.Tags = versions[i].Tags
	}
	page := &oneModel{trained: trainedOf(m), Address: modelAddress(m.Ref()), Own: found.Owner == ""}
	if page.Start = v.s.StartOf(&m); page.Start != "" && !strings.HasPrefix(page.Start, "sha256:") {
		_, err := v.s.FindModel(v.Context(), page.Start)
		if page.Linked = err == nil; !page.Linked && !page.Own { // it is not shared
			page.Start = ""
		}
	}
	page.Next = v.startedFrom(m.Ref())
	if in := m.Network.Input; len(in) == 3 && in[0] != 2 && in[0] <= 3 && min(in[1], in[2]) >= smallestDrawn {
		page.Drawn = []int{in[2], in[1]}
	}
	return page, nil
}

// startedFrom are the models of the tenant, and those shared with it, whose training started from a model. Damaged ones
// are left out.
func (v *visit) startedFrom(ref string) (out []string) {
	var found []modelstore.Model
	for m, err := range v.s.AllModels(v.Context()) {
		if err == nil && v.s.StartOf(&m) == ref {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b modelstore.Model) int { return b.Created.Compare(a.Created) })
	for i := range found {
		out = append(out, found[i].Ref())
	}
	return out
}

// smallestDrawn is the least width of a picture that somebody can draw.
const smallestDrawn = 8

// promoteModel gives a tag to a version of a model of the tenant.
func promoteModel(v *visit) error {
	v.Body = http.MaxBytesReader(v.w, v.Body, mostForm)
	m, err := client.Local(v.s).Models.Tag(v.Context(), v.PathValue("model"), v.PostFormValue("tag"))
	if err != nil {
		return err
	}
	v.done("promote", modelAddress(m.Ref()))
	return nil
}

func (p *oneModel) write(v *visit, status int) error {
	v.write(status, "model", view{Title: "Model " + p.Ref, Here: "Models", Body: p})
	return nil
}

// tryModel asks a model about the rows or the picture of a file, or about rows that were typed.
func tryModel(v *visit) error {
	m, err := v.s.Trained(v.Context(), v.PathValue("model"))
	if err != nil {
		return err
	}
	page, err := v.model()
	if err != nil {
		return err
	}
	name, data, err := v.tried(m)
	if err != nil {
		return err
	}
	m.MostRows, m.MostPixels = mostAnswers, mostPixels
	doc, err := render.AnswerFile(v.Context(), v.s.Predictor, m, name, data, disdel.Continuation{})
	if err != nil {
		page.Refused = disdel.AsError(err)
		return page.write(v, http.StatusUnprocessableEntity)
	}
	page.Notes, page.Answers = doc.Warnings, answersOf(&doc, m)
	return page.write(v, http.StatusOK)
}

// tried are the rows that a form asks about: those of its file, else the text of its field "rows" under a name that
// tells their format.
func (v *visit) tried(m *infer.Model) (name string, data []byte, err error) {
	head, data, err := v.file(mostTried, "disdel infer takes a larger file")
	typed := strings.TrimSpace(v.PostFormValue("rows"))
	switch {
	case err == nil && (len(data) > 0 || typed == ""):
		return head.Filename, data, nil
	case err != nil && (typed == "" || !errors.Is(err, http.ErrMissingFile)):
		return "", nil, err
	}
	data = []byte(strings.ReplaceAll(typed, "\r\n", "\n") + "\n")
	switch _, texts := m.Texts("rows.txt", data); {
	case strings.HasPrefix(typed, "[") || strings.HasPrefix(typed, "{"):
		name = "rows.json"
	case texts:
		name = "rows.txt"
	default:
		name = "rows.csv"
	}
	return name, data, nil
}

// answersOf are the answers of a document, one for each row.
func answersOf(doc *render.Inference, m *infer.Model) (out []answer) {
	for i, class := range doc.Classes {
		a := answer{Row: i + 1, What: fmt.Sprintf("class %d", class)}
		if class < len(m.Labels) {
			a.What = m.Labels[class]
		}
		if i < len(doc.Probabilities) && class < len(doc.Probabilities[i]) {
			if a.Share = fmt.Sprintf("%.1f %%", 100*doc.Probabilities[i][class]); doc.PlainOutputs {
				a.Share = fmt.Sprintf("%.4g", doc.Probabilities[i][class])
			}
		}
		out = append(out, a)
	}
	for i, values := range doc.Values {
		a := answer{Row: i + 1, What: fmt.Sprintf("%.4g", values)}
		if i < len(doc.Yes) {
			a.What, a.Share = cmp.Or(strings.Join(doc.Yes[i], ", "), "none of the labels"), labelShares(doc.TargetNames, values)
		}
		out = append(out, a)
	}
	for i, value := range doc.Predictions {
		out = append(out, answer{Row: i + 1, What: fmt.Sprintf("%.4g", value)})
	}
	for i, text := range doc.Continued {
		out = append(out, answer{Row: i + 1, What: text.Text})
	}
	return out
}

// labelShares are the probabilities of labels.
func labelShares(names []string, values []float64) string {
	parts := make([]string, len(values))
	for k, p := range values {
		parts[k] = fmt.Sprintf("%s %.1f %%", names[k], 100*p)
	}
	return strings.Join(parts, ", ")
}

// file reads the form's field "file" of at most so many bytes.
func (v *visit) file(most int64, instead string) (*multipart.FileHeader, []byte, error) {
	v.Body = http.MaxBytesReader(v.w, v.Body, most+mostForm)
	fault := func(err error) error {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "read form", Err: err, Hint: instead,
			Msg: fmt.Sprintf("the form has no file of at most %v", disdel.Bytes(most)),
		}
	}
	if err := v.ParseMultipartForm(most + mostForm); err != nil {
		return nil, nil, fault(err)
	}
	file, head, err := v.FormFile("file")
	if err != nil {
		return nil, nil, fault(err)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, nil, fault(err)
	}
	return head, data, nil
}

// modelONNX answers with a model as an ONNX file.
func modelONNX(v *visit) error {
	m, err := v.s.FindModel(v.Context(), v.PathValue("model"))
	if err != nil {
		return err
	}
	if m.Size > mostExported {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export model",
			Msg:  fmt.Sprintf("the model has %v, and the page sends at most %v", m.Size, disdel.Bytes(mostExported)),
			Hint: "disdel model export " + m.Ref() + " --to onnx --file model.onnx",
		}
	}
	var weights, out bytes.Buffer
	if err := m.Store.CopyWeights(v.Context(), &weights, m.Path, m.Checksum); err != nil {
		return err
	}
	notes, err := export.ModelNotes(m.Ref(), m.Data.Name, m.Checksum, m.Labels)
	if err == nil {
		err = export.ConvertONNX(&out, m.Network, weights.Bytes(), notes)
	}
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/octet-stream")
	v.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", m.Name+".onnx"))
	v.w.Write(out.Bytes()) //nolint:errcheck // the browser went away
	return nil
}

// addedData is the result of an upload, for the page of data sets.
type addedData struct {
	render.Dataset
	Refused *disdel.Error // why the table was not added; nil: it was
	Faults  []disdel.Fault
}

// uploadTable adds a data set of a CSV file, and shows how its columns were understood.
func uploadTable(v *visit) error {
	head, data, err := v.file(mostTable, "disdel dataset add takes a larger table")
	if err != nil {
		return err
	}
	added := &addedData{}
	added.Dataset, err = v.addTable(head.Filename, data)
	if err != nil {
		added.Refused = disdel.AsError(err)
		if faults, ok := errors.AsType[*disdel.Faults](err); ok {
			added.Faults = faults.Faults
		}
		return showDatasets(v, http.StatusUnprocessableEntity, added)
	}
	return showDatasets(v, http.StatusOK, added)
}

func (v *visit) addTable(file string, data []byte) (set render.Dataset, err error) {
	table := dense.CSV{
		Label: v.PostFormValue("label"),
		Source: dataset.Source{Name: file, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		}},
	}
	in, err := table.Input(v.PostFormValue("name"))
	if err != nil {
		return set, err
	}
	release, err := v.s.ClaimDisk(v.Context(), disdel.Bytes(len(data)))
	if err != nil {
		return set, err
	}
	defer release()
	return client.Local(v.s).Data.AddDense(v.Context(), in, false)
}
