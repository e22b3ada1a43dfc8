package render

import (
	"fmt"
	"io"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// ShowOutcome prints the result of a job. It returns the job's failure, which it has reported, or terminal.ErrPaused.
// The commands that it prints have the flags of u's place.
func ShowOutcome(u *terminal.UI, rec *disdel.Record, notes []string) error {
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
		u.Say("next:  %s", u.Command(afterwards(rec)...))
		return terminal.Reported(terminal.ErrPaused)
	}
	if u.Format != "table" { // an error is the last line of what programs read
		u.Say("next:  %s", u.Command(afterwards(rec)...))
		return failure(rec)
	}
	u.Fail(failure(rec))
	u.Say("next:  %s", u.Command(afterwards(rec)...))
	return terminal.Reported(failure(rec))
}

// afterwards is the command that is next for a job that did not succeed: what was only stopped goes on.
func afterwards(r *disdel.Record) []string {
	stopped := r.Status == disdel.StatusCanceled || r.Status == disdel.StatusPaused
	if stopped || r.Failure != nil && r.Failure.Code == disdel.CodeUnreachable {
		return []string{"resume", string(r.ID)}
	}
	return []string{"report", string(r.ID)}
}

func failure(r *disdel.Record) error {
	if r.Failure != nil {
		return r.Failure
	}
	return &disdel.Error{Kind: disdel.Internal, Op: "run job", Job: r.ID, Msg: "the job ended as " + r.Status.String()}
}

// SayModel names the commands that are next for a job that passed.
func SayModel(u *terminal.UI, rec *disdel.Record) {
	if rec.Model != nil {
		u.Say("next:  %s\n       %s", u.Command("history", "show", string(rec.ID)),
			u.Command("model", "show", fmt.Sprintf("%s:v%d", rec.Model.Name, rec.Model.Version)))
	}
}
