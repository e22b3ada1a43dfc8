package jobtext

import (
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// ShowOutcome prints what came of a job, and returns its failure, which is reported then, or terminal.ErrPaused. where
// is the flags that later commands about the job need too.
func ShowOutcome(u *terminal.UI, rec *disdel.Record, notes []string, where string) error {
	u.Say("")
	if err := u.Show(rec, func(w io.Writer) { PrintRecord(w, rec) }); err != nil {
		return err
	}
	for _, text := range rec.Warnings {
		if u.Format != "table" { // which has them
			u.Say("warning: %s", text)
		}
	}
	for _, note := range notes {
		u.Say("%s", note)
	}
	if rec.Status == disdel.StatusSucceeded {
		return nil
	}
	if rec.Status == disdel.StatusPaused && rec.Failure == nil {
		u.Say("%s is paused, which is no failure", rec.ID)
		u.Say("next:  %s %s%s", terminal.Program(), afterwards(rec), where)
		return terminal.Reported(terminal.ErrPaused)
	}
	if u.Format != "table" { // an error is the last line of what programs read
		u.Say("next:  %s %s", terminal.Program(), afterwards(rec))
		return failure(rec)
	}
	u.Fail(failure(rec))
	u.Say("next:  %s %s%s", terminal.Program(), afterwards(rec), where)
	return terminal.Reported(failure(rec))
}

// afterwards is the command that is next for a job that did not succeed: what was only stopped goes on.
func afterwards(r *disdel.Record) string {
	stopped := r.Status == disdel.StatusCanceled || r.Status == disdel.StatusPaused
	if stopped || r.Failure != nil && r.Failure.Code == disdel.CodeUnreachable {
		return "resume " + string(r.ID)
	}
	return "report " + string(r.ID)
}

func failure(r *disdel.Record) error {
	if r.Failure != nil {
		return r.Failure
	}
	return &disdel.Error{Kind: disdel.Internal, Op: "run job", Job: r.ID, Msg: "the job ended as " + r.Status.String()}
}

// SayModel names the commands that are next for a job that passed.
func SayModel(u *terminal.UI, rec *disdel.Record, where string) {
	if rec.Model != nil {
		u.Say("next:  %[1]s history show %[2]s%[5]s\n       %[1]s model show %[3]s:v%[4]d%[5]s", terminal.Program(), rec.ID,
			rec.Model.Name, rec.Model.Version, where)
	}
}
