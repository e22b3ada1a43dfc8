package client

import (
	"context"
	"io"
	"iter"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/dataset"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/internal/modelstore"
	"github.com/disdel/disdel/internal/render"
	"github.com/disdel/disdel/service"
)

// Client is a service, wherever it is.
type Client struct {
	Jobs    Jobs
	Records Records
	Models  Models
	Data    Data
}

// Jobs runs jobs.
type Jobs interface {
	Submit(ctx context.Context, req service.Request) (Run, error)
	Resume(ctx context.Context, req service.ResumeRequest) (Run, error)
	// Watch looks at a job, whoever runs it.
	Watch(ctx context.Context, job string) (Run, error)
	// Ask has a job become paused or canceled.
	Ask(ctx context.Context, job string, to disdel.Status, cause string) error
	Estimate(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation, error)
	// Check returns everything that is wrong with a job, as *disdel.Faults.
	Check(ctx context.Context, req service.Request) error
}

// Run is a job that is queued or run.
type Run interface {
	ID() disdel.JobID
	// EventsAfter is what happens to the job, from after a number on.
	EventsAfter(ctx context.Context, number int) iter.Seq[service.Event]
	// Cancel stops the job.
	Cancel(cause error)
	// Wait returns the job's record once it has ended, or is paused.
	Wait(ctx context.Context) (disdel.Record, error)
}

// Records is the history of jobs.
type Records interface {
	List(ctx context.Context, q history.Query) ([]disdel.Record, error)
	// Get finds a job by its id, the start of one, its name or @last.
	Get(ctx context.Context, job string) (disdel.Record, error)
	// Runner tells whether a job is run, and by whom.
	Runner(ctx context.Context, id disdel.JobID) (who service.Runner, runs bool, err error)
	// Remarks is what people have said of jobs.
	Remarks(ctx context.Context) (map[disdel.JobID]history.Remark, error)
	// SetRemark says it anew of one.
	SetRemark(ctx context.Context, id disdel.JobID, r history.Remark) error
	// Forget deletes the record of a job that has ended.
	Forget(ctx context.Context, id disdel.JobID) error
}

// Models is trained models.
type Models interface {
	// List may have models beside an error: those that are not damaged.
	List(ctx context.Context) ([]modelstore.Model, error)
	Get(ctx context.Context, ref string) (modelstore.Model, error)
	// CopyWeights writes the weights of a model as safetensors.
	CopyWeights(ctx context.Context, w io.Writer, m *modelstore.Model) error
	// Tag has NAME:TAG mean a version from now on.
	Tag(ctx context.Context, ref, tag string) (modelstore.Model, error)
	// Remove deletes a version that no tag means.
	Remove(ctx context.Context, ref string) (modelstore.Model, error)
	// Answer classifies the rows of a file. What was found out before an error comes with it.
	Answer(ctx context.Context, ref, file string, text []byte) (render.Inference, modelstore.Model, error)
	// AnswerData answers for the rows of a data set. A nil sink takes none, and the answers are kept, which a server does
	// not do.
	AnswerData(ctx context.Context, ref string, ask service.DataQuestion, to service.DataSink) (service.DataAnswers, error)
	// PutWeights keeps a file of weights for jobs to begin with, and returns what they name it by.
	PutWeights(ctx context.Context, file string) (ref string, err error)
	// KeptWeights are such files.
	KeptWeights(ctx context.Context) ([]modelstore.StoredWeights, error)
	// RemoveWeights deletes such a file.
	RemoveWeights(ctx context.Context, ref string) error
	// Judge holds what a model says of a data set's rows against their labels.
	Judge(ctx context.Context, ref, dataset string) (service.Judgement, error)
}

// Data is data sets.
type Data interface {
	// List may have data sets beside an error: those that are not damaged.
	List(ctx context.Context) ([]render.Dataset, error)
	Get(ctx context.Context, name string) (render.Dataset, error)
	Sample(ctx context.Context, name string, rows []int, seed int64) (dataset.Sampled, error)
	// AddKnown adds a public data set by its name.
	AddKnown(ctx context.Context, name string, overwrite bool) (render.Dataset, error)
	// AddFiles adds a data set of files, and says what is probably not meant.
	AddFiles(ctx context.Context, name string, files dataset.Files, overwrite bool) (render.Dataset, error)
	// AddDense adds a data set of a table, of arrays or of pictures, which are read here.
	AddDense(ctx context.Context, in dataset.DenseInput, overwrite bool) (render.Dataset, error)
	// AddSparse adds a data set of sparse rows, which are read here.
	AddSparse(ctx context.Context, in dataset.SparseInput, overwrite bool) (render.Dataset, error)
	// Remove takes a data set away that no running job reads.
	Remove(ctx context.Context, name string) (dataset.Removed, error)
}
