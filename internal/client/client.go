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
	"github.com/disdel/disdel/service/infer"
	"github.com/disdel/disdel/service/tenant"
)

// Client is a service, in this process or behind a server.
type Client struct {
	Jobs    Jobs
	Records Records
	Models  Models
	Data    Data
	Shares  Shares
}

// Shares says which other tenants may read items of the tenant. name is the item's name, of a job also its id.
type Shares interface {
	// Share lets more tenants read an item: those named, or all. It returns who can read it then.
	Share(ctx context.Context, kind tenant.ItemKind, name string, with []string, all bool) (tenant.Share, error)
	// Unshare takes that right back from the tenants named, from all others, or with neither from everybody.
	Unshare(ctx context.Context, kind tenant.ItemKind, name string, from []string, all bool) (tenant.Share, error)
	// ShareOf returns who can read an item.
	ShareOf(ctx context.Context, kind tenant.ItemKind, name string) (tenant.Share, error)
}

// Jobs runs jobs.
type Jobs interface {
	Submit(ctx context.Context, req service.Request) (Run, error)
	Resume(ctx context.Context, req service.ResumeRequest) (Run, error)
	// Watch returns a Run of a job, whichever process runs it.
	Watch(ctx context.Context, job string) (Run, error)
	// RequestStop asks for a job to be paused or canceled.
	RequestStop(ctx context.Context, job string, to disdel.Status, cause string) error
	Estimate(ctx context.Context, req service.Request, q service.Questions) (*service.Estimation, error)
	// Check returns all faults of a job, as *disdel.Faults.
	Check(ctx context.Context, req service.Request) error
}

// Run is a queued or running job.
type Run interface {
	ID() disdel.JobID
	// EventsAfter yields the events of the job after a number.
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
	// Runner reports whether a job is run, and by which process.
	Runner(ctx context.Context, id disdel.JobID) (who service.Runner, runs bool, err error)
	// Remarks returns the remarks about jobs.
	Remarks(ctx context.Context) (map[disdel.JobID]history.Remark, error)
	// SetRemark replaces the remark about a job.
	SetRemark(ctx context.Context, id disdel.JobID, r history.Remark) error
	// Forget deletes the record of a job that has ended.
	Forget(ctx context.Context, id disdel.JobID) error
	// Stored lists what takes space: of a tenant its own items, of a home and of a server's operator also all tenants'.
	Stored(ctx context.Context) ([]service.StoredItem, error)
	// RemoveStored deletes items of one's own that nothing needs, up to the first error. It returns how many are gone.
	RemoveStored(ctx context.Context, items []service.StoredItem) (gone int, err error)
}

// Models is trained models.
type Models interface {
	// List may return items together with an error: those that are not damaged.
	List(ctx context.Context) ([]modelstore.Model, error)
	Get(ctx context.Context, ref string) (modelstore.Model, error)
	// CopyWeights writes the weights of a model as safetensors.
	CopyWeights(ctx context.Context, w io.Writer, m *modelstore.Model) error
	// Add stores a model that no job has trained as the next version of its name. A server does not do that.
	Add(ctx context.Context, m modelstore.Model, weights disdel.Weights, files modelstore.HubFiles) (
		modelstore.Model, error)
	// HubFiles returns the tokenizer of a model, and the origin of the model of a hub that its training began with. A
	// server does not do that.
	HubFiles(ctx context.Context, m *modelstore.Model) (modelstore.HubFiles, error)
	// Tag makes NAME:TAG name a version.
	Tag(ctx context.Context, ref, tag string) (modelstore.Model, error)
	// Remove deletes an item that is not in use.
	Remove(ctx context.Context, ref string) (modelstore.Model, error)
	// Answer classifies the rows of a file, or continues its texts. Results before an error come with it.
	Answer(ctx context.Context, ref, file string, text []byte, how disdel.Continuation) (
		render.Inference, modelstore.Model, error)
	// AnswerData answers for the rows of a data set. With a nil sink the answers are kept; a server does not do that.
	AnswerData(ctx context.Context, ref string, ask infer.DataRequest, to infer.DataSink) (infer.DataAnswers, error)
	// PutWeights stores a file of initial weights, and returns the name of it for jobs.
	PutWeights(ctx context.Context, file string) (ref string, err error)
	// KeptWeights lists these files.
	KeptWeights(ctx context.Context) ([]modelstore.StoredWeights, error)
	// RemoveWeights deletes such a file.
	RemoveWeights(ctx context.Context, ref string) error
	// WriteProgram stores the archive of a Python program, and returns its digest.
	WriteProgram(ctx context.Context, archive []byte) (code string, err error)
	// ReadProgram reads the archive of the Python program whose network a model has.
	ReadProgram(ctx context.Context, m *modelstore.Model) ([]byte, error)
	// InstallPackages has a server install the packages of a requirements.txt, and returns the name of their environment,
	// which a submission names. Here describing a program installs them: the name is "".
	InstallPackages(ctx context.Context, file string) (environment string, err error)
	// Evaluate compares the predictions of a model for a data set with its labels.
	Evaluate(ctx context.Context, ref, dataset string) (infer.Evaluation, error)
}

// Data is data sets.
type Data interface {
	// List may return items together with an error: those that are not damaged.
	List(ctx context.Context) ([]render.Dataset, error)
	Get(ctx context.Context, name string) (render.Dataset, error)
	Sample(ctx context.Context, name string, rows []int, seed int64) (dataset.SampleRows, error)
	// Statistics reads all training rows of a data set, and describes them.
	Statistics(ctx context.Context, name string) (dataset.Statistics, error)
	// AddKnown adds a public data set by its name.
	AddKnown(ctx context.Context, name string, overwrite bool) (render.Dataset, error)
	// AddFiles adds a data set of IDX files, with warnings about what looks like a mistake.
	AddFiles(ctx context.Context, name string, files dataset.Files, overwrite bool) (render.Dataset, error)
	// AddDense adds a data set of a table, of arrays or of pictures, which are read on this side.
	AddDense(ctx context.Context, in dataset.DenseInput, overwrite bool) (render.Dataset, error)
	// AddSparse adds a data set of sparse rows, which are read on this side.
	AddSparse(ctx context.Context, in dataset.SparseInput, overwrite bool) (render.Dataset, error)
	// Remove deletes an item that is not in use.
	Remove(ctx context.Context, name string) (dataset.Removed, error)
}
