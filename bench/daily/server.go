package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/bench/rig"
	"github.com/disdel/disdel/history"
	"github.com/disdel/disdel/service"
)

// server is a disdel serve with a home of its own, which this process writes records into as another one of the
// machine would.
type server struct {
	home, url, token string
	cmd              *exec.Cmd
	own              *service.Service
	records          *history.Store
}

// serve starts a server on a home that prepare has filled.
func serve(ctx context.Context, t *tools, prepare func(records *history.Store) error) (s *server, err error) {
	home, err := os.MkdirTemp("", "bench-daily-")
	if err != nil {
		return nil, err
	}
	s = &server{home: home}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.own, err = service.Open(ctx, service.Config{Home: home}); err != nil {
		return s, err
	}
	if s.records, err = s.own.History(ctx); err != nil {
		return s, err
	}
	if err = prepare(s.records); err != nil {
		return s, err
	}
	return s, s.start(t)
}

func (s *server) start(t *tools) error {
	s.cmd = exec.Command(t.disdel, "serve", "--listen", "127.0.0.1:0", "-o", "json")
	s.cmd.Env = append(os.Environ(), "DISDEL_HOME="+s.home)
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.cmd = nil
		return err
	}
	var told struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&told); err != nil {
		return fmt.Errorf("the server said nothing: %w", err)
	}
	token, err := os.ReadFile(filepath.Join(s.home, "server.token"))
	s.url, s.token = told.URL, strings.TrimSpace(string(token))
	return err
}

func (s *server) close() error {
	var err error
	if s.cmd != nil {
		s.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		s.cmd.Wait()                       //nolint:errcheck // interrupted
	}
	if s.own != nil {
		err = s.own.Close()
	}
	return errors.Join(err, os.RemoveAll(s.home))
}

// signIn is the cookie of somebody who signed in.
func (s *server) signIn(ctx context.Context) (*http.Cookie, error) {
	form := strings.NewReader(url.Values{"token": {s.token}}.Encode())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/ui/login", form)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body) //nolint:errcheck // only the cookie counts
	if len(res.Cookies()) != 1 {
		return nil, errors.New("signing in: " + res.Status)
	}
	return res.Cookies()[0], nil
}

// residentMB is what the server holds, in MB.
func (s *server) residentMB() (float64, error) {
	memory, err := rig.Memory(s.cmd.Process.Pid, "VmRSS")
	if err != nil {
		return 0, err
	}
	return float64(memory[0]) / 1e6, nil
}

// processorMS is the processor time that the server has taken, in ms, to 10 ms.
func (s *server) processorMS() (ms float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for i := 11; i < 13 && err == nil; i++ { // user and system time, as proc(5) counts fields behind the name
		var ticks float64
		ticks, err = strconv.ParseFloat(fields[i], 64)
		ms += 10 * ticks
	}
	return ms, err
}

var born = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// record is the number-th job, which has ended after so many rounds, with what records of such jobs have.
func record(number, rounds int) *disdel.Record {
	created := born.Add(time.Duration(number) * time.Minute)
	id := disdel.JobID("job-" + strings.ToLower(ulid.MustNew(ulid.Timestamp(created), ulid.DefaultEntropy()).String()))
	r := &disdel.Record{
		APIVersion: disdel.APIVersion, ID: id, Status: disdel.StatusSucceeded, Created: created,
		Ended: created.Add(time.Minute), CostGBs: 1.5, Accuracy: 0.9, Loss: 0.3,
	}
	r.Job.Metadata.Name = fmt.Sprintf("job-%d", number)
	r.Job.Metadata.Labels = map[string]string{"team": "vision"}
	r.Job.Model.Name, r.Job.Data.Source, r.Data.Name = "digits-cnn", "dataset://digits", "digits"
	r.Job.Training.BatchSize, r.Plan.Workers, r.Plan.Rounds = 64+number%7, 2, rounds
	for i := range rounds {
		loss := 1/float64(i+1) + float64((i*7919+number)%13)/1000
		accuracy := 1 - loss/2
		r.Rounds = append(r.Rounds, disdel.Round{
			Round: i, TrainLoss: loss, Loss: &loss, Accuracy: &accuracy, Duration: disdel.Millis(time.Second),
		})
	}
	for i := range min(3*rounds, 60) { // a long job's record leaves most of them out
		begun := created.Add(time.Duration(i) * time.Second)
		a := disdel.Activation{
			Invocation: disdel.Invocation{
				ID: fmt.Sprintf("round %d/train/%d", i/2, i%2), Task: disdel.TaskTrain, Round: i / 2, Member: i % 2, Attempt: 1,
				Limits: disdel.Limits{Memory: 256 * disdel.MB},
			},
			ID: disdel.ActivationID(fmt.Sprintf("%032x", number*1000+i)), Outcome: disdel.OutcomeSuccess, Start: begun,
			End: begun.Add(time.Second), Duration: disdel.Millis(time.Second), Peak: 180 * disdel.MB,
		}
		for k := range 5 {
			a.Beats = append(a.Beats, disdel.Beat{
				At: disdel.Millis(k), Resident: 150 * disdel.MB, Peak: 180 * disdel.MB, Epoch: 1, Batch: k, Batches: 20,
			})
		}
		r.Activations = append(r.Activations, a)
	}
	return r
}
