package web

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/service"
	"github.com/disdel/disdel/service/infer"
)

// mostJobFile bounds a form with a job file. The memory that a page holds is enough to plan a job of this size.
const mostJobFile = 128 << 10

// draft is the job file of an empty form.
const draft = `apiVersion: ` + disdel.APIVersion + `
kind: TrainingJob
metadata:
  name: digits
model:
  name: digits-cnn
data:
  source: dataset://digits
training:
  epochs: 3
  batchSize: 64
distribution:
  workers: 2
`

// submitForm is the form for a new job.
type submitForm struct {
	File    string   // the text of the job file
	From    string   // name of the job whose file it is; "": of none
	Key     string   // makes a second click on the button return the first one's job
	Changes []change // of the job file, by a click
	Checked bool
	Faults  []disdel.Fault
	Refused *disdel.Error // why the job would not be taken; nil: it would
	Plan    *disdel.Plan  // nil: the job cannot be planned
}

// submitPage shows the form, with the file of the job that the address names.
func submitPage(v *visit) error {
	form := submitForm{File: draft}
	if job := v.URL.Query().Get("job"); job != "" {
		rec, err := v.s.Look(v.Context(), job)
		if err != nil {
			return err
		}
		form.From, form.Changes = rec.Job.Metadata.Name, changesOf(&rec)
		form.File, err = changedSpec(&rec, v.URL.Query()["set"])
		form.refuse(err)
	}
	if name := v.URL.Query().Get("data"); name != "" {
		set, err := v.s.FindDataset(v.Context(), name)
		if err != nil {
			return err
		}
		form.File = draftOf(set)
	}
	return form.write(v, http.StatusOK)
}

// change is a link to the form with a changed job file.
type change struct{ Name, Link string }

// changesOf are the usual changes of a job file for another try.
func changesOf(rec *disdel.Record) (out []change) {
	o, batch := rec.Job.Training.Optimizer, rec.Job.Training.BatchSize
	rate := "training.optimizer." + o.Name() + ".learningRate="
	if o.Name() != "" && o.Rate() > 0 {
		out = append(out, change{"Half the rate", submitAddress(rec.ID, fmt.Sprintf("%s%g", rate, o.Rate()/2))},
			change{"Twice the rate", submitAddress(rec.ID, fmt.Sprintf("%s%g", rate, 2*o.Rate()))})
	}
	if batch > 1 {
		out = append(out, change{"Half the batch", submitAddress(rec.ID, fmt.Sprintf("training.batchSize=%d", batch/2))})
	}
	epochs := fmt.Sprintf("training.epochs=%d", 2*rec.Job.Training.Epochs)
	return append(out, change{"Twice the epochs", submitAddress(rec.ID, epochs)})
}

// submitAddress is the address of the form with the file of a job, changed as --set changes it.
func submitAddress(id disdel.JobID, sets ...string) string {
	return Root + "submit?" + url.Values{"job": {string(id)}, "set": sets}.Encode()
}

// changedSpec is the job file of a record with changes. The error tells why they cannot be made; then there are none.
func changedSpec(rec *disdel.Record, sets []string) (string, error) {
	spec := specOf(rec)
	if len(sets) == 0 {
		return spec, nil
	}
	file, err := jobfile.Parse(rec.Job.Metadata.Name, []byte(spec), sets)
	if err != nil {
		return spec, err
	}
	text, err := jobfile.Print(file.Job)
	return string(text), err
}

// draftOf is a job file that trains on a data set.
func draftOf(set infer.Dataset) string {
	d := jobfile.Draft{
		Name: set.Name, Dataset: set.Ref, Sample: set.Sample, Classes: set.Classes, Rows: set.Train.Rows,
		HeldOut: set.Test.Rows, NextToken: set.NextToken, Sparse: set.Sparse,
		Targets: set.Targets,
	}
	return string(d.Text())
}

func (f *submitForm) write(v *visit, status int) error {
	f.Key = rand.Text()
	v.write(status, "submit", view{Title: "Submit a job", Here: "Jobs", Body: f})
	return nil
}

// sent reads the form of a request. The error of the job file is returned as ofFile, so that the form can show it.
func (v *visit) sent() (form submitForm, req service.Request, ofFile, err error) {
	v.Body = http.MaxBytesReader(v.w, v.Body, mostJobFile)
	if err := v.ParseForm(); err != nil {
		return form, req, nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "read form", Err: err,
			Msg:  fmt.Sprintf("the form cannot be read; it may have at most %v", disdel.Bytes(mostJobFile)),
			Hint: "disdel submit takes a larger job file",
		}
	}
	// Browsers send lines that end in \r\n, and the page shows no control characters.
	text := strings.ReplaceAll(v.PostForm.Get("file"), "\r\n", "\n")
	form = submitForm{File: text, From: v.PostForm.Get("from"), Checked: true}
	req, ofFile = v.site.Read(text)
	return form, req, ofFile, nil
}

// checkForm shows the estimate of a job, or all its faults.
func checkForm(v *visit) error {
	form, req, wrong, err := v.sent()
	if err != nil {
		return err
	}
	if wrong == nil {
		var found *service.Estimation
		if found, wrong = v.s.Estimate(v.Context(), req, service.Questions{Admit: true}); found != nil {
			form.Plan = found.Plan
		}
	}
	form.refuse(wrong)
	return form.write(v, http.StatusOK)
}

// jobSchema answers with the schema of job files, from which the form offers fields and values.
func jobSchema(v *visit) error {
	v.w.Header().Set("Content-Type", "application/schema+json")
	v.w.Write(jobfile.Schema()) //nolint:errcheck // the browser went away
	return nil
}

// submitJob starts a job and shows its page. It shows the form again if the job is not taken.
func submitJob(v *visit) error {
	if err := v.draining(); err != nil {
		return err
	}
	form, req, wrong, err := v.sent()
	if err != nil {
		return err
	}
	var run *service.Run
	if wrong == nil {
		req.Key = v.PostForm.Get("key")
		run, wrong = v.s.Submit(v.Context(), req)
	}
	if wrong != nil {
		form.refuse(wrong)
		return form.write(v, cmp.Or(statuses[disdel.KindOf(wrong)], http.StatusUnprocessableEntity))
	}
	v.started("submit", run)
	return nil
}

// quickstart adds the data set digits if it is missing, and trains a small network on it.
func quickstart(v *visit) error {
	if err := v.draining(); err != nil {
		return err
	}
	v.Body = http.MaxBytesReader(v.w, v.Body, mostForm)
	if err := v.s.AddDigits(v.Context()); err != nil {
		return err
	}
	req, err := v.site.Read(draft)
	if err != nil {
		return err
	}
	req.Key = v.PostFormValue("key")
	run, err := v.s.Submit(v.Context(), req)
	if err != nil {
		return err
	}
	v.started("submit", run)
	return nil
}

// refuse keeps why a job would not be taken.
func (f *submitForm) refuse(err error) {
	if faults, ok := errors.AsType[*disdel.Faults](err); ok {
		f.Faults = faults.Faults
	} else if err != nil {
		f.Refused = disdel.AsError(err)
	}
}

// started shows the page of a job that has begun.
func (v *visit) started(outcome string, run *service.Run) {
	if v.site.Started != nil {
		v.site.Started(v.Context(), run.ID())
	}
	v.done(outcome, jobAddress(run.ID()))
}

// resumeJob continues a job, or trains the model of one that succeeded for more epochs.
func resumeJob(v *visit) error {
	if err := v.draining(); err != nil {
		return err
	}
	v.Body = http.MaxBytesReader(v.w, v.Body, mostForm)
	req := service.ResumeRequest{Job: v.PathValue("job")}
	if text, was := v.PostFormValue("epochs"), v.PostFormValue("was"); text != "" && text != was {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return &disdel.Error{
				Kind: disdel.Invalid, Op: "resume job", Msg: fmt.Sprintf("%.20q is not a number of epochs", text),
				Hint: "give a whole number of at least 1",
			}
		}
		req.Sets = []string{"training.epochs=" + strconv.Itoa(n)}
		req.Origin = &disdel.Origin{Command: "resume", Sets: req.Sets}
	}
	run, err := v.s.Resume(v.Context(), req)
	if err != nil {
		return err
	}
	v.started("resume", run)
	return nil
}

// draining returns Unavailable once the server is about to end, and takes no more jobs.
func (v *visit) draining() error {
	if v.site.Drains.Err() == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Unavailable, Op: "serve", Msg: "the server is about to end", Hint: "try again in a while",
	}
}

// readJob reads a job file for a server without rules of its own.
func readJob(text string) (service.Request, error) {
	file, err := jobfile.Parse("job", []byte(text), nil)
	return service.Request{
		Job: file.Job, Source: service.Source{Name: file.Name, Locate: file.Locate},
		Origin: &disdel.Origin{Command: "submit"},
	}, err
}

// again is how a job that does not run can go on.
type again struct {
	Button string
	Why    string
	Was    int // epochs, those of the job that it continued among them
	Epochs int // that the form begins with
}

// againOf returns nil for a job that has not ended.
func againOf(rec *disdel.Record) *again {
	was := rec.Job.Training.Epochs
	if rec.Continued != nil {
		was += rec.Continued.Epochs
	}
	switch {
	case rec.Status.Unfinished():
		return nil
	case rec.Status == disdel.StatusSucceeded && rec.Unevaluated == nil:
		return &again{"Train further", "A new job starts from the model of this one.", was, 2 * was}
	default:
		return &again{"Resume", "The job goes on at its newest checkpoint.", was, was}
	}
}
