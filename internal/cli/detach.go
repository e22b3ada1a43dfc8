package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/terminal"
)

// backgroundVariable tells a process that it runs its job in the background, and names its log. reportDescriptor is the
// file on which it reports the job's id.
const (
	backgroundVariable = "DISDEL_BACKGROUND_LOG"
	reportDescriptor   = 3
)

// detachedDocument is what --detach prints with -o json.
type detachedDocument struct {
	Job disdel.JobID `json:"job"`
	// Log is the file for what the background process prints. The process removes it when the job has its record. "":
	// a server runs the job.
	Log string `json:"log,omitempty"`
}

// showDetached prints the id of a job that goes on without this process.
func showDetached(u *ui, doc detachedDocument) error {
	err := u.Show(doc, func(w io.Writer) { fmt.Fprintln(w, doc.Job) })
	sayJobCommands(u, doc.Job)
	return err
}

// detachesHere says whether the command starts a background process for its job: with --detach and without a server.
func detachesHere(c *cli.Context) bool {
	at, err := serverOf(c)
	return err == nil && at == nil && c.Bool("detach") && os.Getenv(backgroundVariable) == ""
}

// detach runs this command in a background process of the home, and returns once its job is acknowledged.
func detach(c *cli.Context, u *ui) error {
	dir, err := home(c)
	if err != nil {
		return err
	}
	b := backgroundProcess{args: u.Args[1:], environment: os.Environ(), messages: u.Err}
	if c.Args().First() == "-" {
		b.stdin = u.In
	}
	doc, err := b.start(c.Context, dir)
	if err != nil {
		return err
	}
	return showDetached(u, doc)
}

// backgroundProcess starts this program again in a session of its own: neither Ctrl-C nor a closed terminal reaches it.
// The process runs one job and ends with it.
type backgroundProcess struct {
	args, environment []string
	stdin             io.Reader // nil: none
	messages          io.Writer // gets what the process prints until its job is acknowledged
}

// start starts the process, and returns once its job is acknowledged. If the process ends before that, its messages
// have the reason, and the error has the kind of its exit code.
func (b backgroundProcess) start(ctx context.Context, home string) (doc detachedDocument, err error) {
	log, err := backgroundLog(home)
	if err != nil {
		return doc, err
	}
	defer log.Close()
	report, reports, err := os.Pipe()
	if err != nil {
		return doc, &disdel.Error{Kind: disdel.Unavailable, Op: "start in the background", Err: err}
	}
	defer report.Close()
	cmd, err := b.command(log, reports)
	if err == nil {
		err = cmd.Start()
	}
	reports.Close()
	if err != nil {
		os.Remove(log.Name())
		return doc, &disdel.Error{Kind: disdel.Unavailable, Op: "start in the background", Err: err}
	}
	defer context.AfterFunc(ctx, func() { cmd.Process.Signal(syscall.SIGTERM) })()
	id, _ := io.ReadAll(report) // an early end of the process gives an empty id
	b.pass(log)
	if len(id) > 0 {
		doc = detachedDocument{Job: disdel.JobID(id), Log: jobLog(home, disdel.JobID(id))}
		return doc, cmd.Process.Release()
	}
	err = cmd.Wait()
	os.Remove(log.Name())
	kind := terminal.KindOf(cmd.ProcessState.ExitCode(), disdel.Internal)
	return doc, terminal.Reported(&disdel.Error{Kind: kind, Op: "run in the background", Err: err})
}

// command is the command of the process.
func (b backgroundProcess) command(log, report *os.File) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, b.args...)
	cmd.Env = append(b.environment, backgroundVariable+"="+log.Name())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = b.stdin, log, log
	cmd.ExtraFiles = []*os.File{report} // reportDescriptor
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// pass passes on what the process has printed so far.
func (b backgroundProcess) pass(log *os.File) {
	const maximum = 64 << 10
	text, _ := io.ReadAll(io.NewSectionReader(log, 0, maximum)) // what can be read is told
	io.WriteString(b.messages, terminal.Clean(string(text)))    //nolint:errcheck // there is no better place to tell
}

// backgroundLog makes the log of a background process, which has no job yet.
func backgroundLog(home string) (*os.File, error) {
	dir := filepath.Join(home, "background")
	err := os.MkdirAll(dir, 0o700)
	var log *os.File
	if err == nil {
		log, err = os.CreateTemp(dir, "*.log")
	}
	if err != nil {
		return nil, &disdel.Error{
			Kind: disdel.Invalid, Op: "make a log file", Err: err, Hint: "name a folder you can write to with --home",
		}
	}
	return log, nil
}

// jobLog is the log of the background process of a job.
func jobLog(home string, id disdel.JobID) string {
	return filepath.Join(home, "background", string(id)+".log")
}

// starter is the process that started this one in the background. The zero value is none.
type starter struct {
	report *os.File // takes the job's id
	log    string   // of this process
}

// takeStarter returns the process that started this one in the background. The actions of the job do not inherit the
// connection to it.
func takeStarter() (s starter) {
	if s.log = os.Getenv(backgroundVariable); s.log == "" {
		return s
	}
	os.Unsetenv(backgroundVariable)
	syscall.CloseOnExec(reportDescriptor)
	s.report = os.NewFile(reportDescriptor, "report")
	return s
}

// acknowledge reports the job to the starter. From then on this process prints only results and errors.
func (s *starter) acknowledge(u *ui, id disdel.JobID) {
	if s.report == nil {
		return
	}
	named := filepath.Join(filepath.Dir(s.log), string(id)+".log")
	if err := os.Rename(s.log, named); err == nil {
		s.log = named
	}
	u.Quiet, u.Live = true, false
	io.WriteString(s.report, string(id)) //nolint:errcheck // a starter that is gone needs no report
	s.report.Close()
}

// removeLog removes the log of a background process whose job has its record.
func (s *starter) removeLog() {
	if s.report != nil {
		os.Remove(s.log)
	}
}
