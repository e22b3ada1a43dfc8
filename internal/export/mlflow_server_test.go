package export

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/disdel/disdel"
)

// mlflowServer starts the mlflow server of a Python environment and returns its address.
func mlflowServer(t *testing.T, python string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	dir := t.TempDir()
	said, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	server := exec.Command(python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port, "--workers", "1",
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "mlflow.db"), "--default-artifact-root",
		filepath.Join(dir, "artifacts"))
	server.Stdout, server.Stderr, server.SysProcAttr = said, said, &syscall.SysProcAttr{Setpgid: true}
	server.Env = append(os.Environ(), "MLFLOW_DISABLE_TELEMETRY=true", "DO_NOT_TRACK=true")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	address := "http://127.0.0.1:" + port
	for range 6000 { // its first start creates the tables of its database
		if reply, err := http.Get(address + "/health"); err == nil {
			reply.Body.Close()
			return address
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(said.Name())
			t.Fatalf("the server ended: %v\n%s", err, text)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatal("the server does not answer")
	return ""
}

// A running MLflow server gets the jobs over its REST API, and its own client reads from it what was sent. A job that
// is sent again is the same run.
func TestJobsGoToAnMLflowServer(t *testing.T) {
	list := os.Getenv("DISDEL_TEST_MLFLOW")
	if list == "" {
		t.Skip("DISDEL_TEST_MLFLOW names no Python with MLflow")
	}
	for _, python := range filepath.SplitList(list) {
		version, err := exec.Command(python, "-c", "import mlflow.version; print(mlflow.version.VERSION)").Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSpace(string(version)), func(t *testing.T) {
			server := MLflowServer{URL: mlflowServer(t, python)}
			first := job("job-1", `a,"b`)
			begun := first
			begun.Status, begun.Ended, begun.Rounds = disdel.StatusRunning, time.Time{}, first.Rounds[:1]
			diverged := job("job-2", "b")
			diverged.Rounds = append([]disdel.Round(nil), diverged.Rounds...)
			diverged.Rounds[1].TrainLoss = math.NaN()
			for _, jobs := range [][]disdel.Record{{begun}, {first, diverged}, {first}} {
				if err := server.Send(t.Context(), jobs); err != nil {
					t.Fatal(err)
				}
			}
			said, err := exec.CommandContext(t.Context(), python, "testdata/mlflow_runs.py", server.URL).Output()
			if err != nil {
				t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
			}
			var got []map[string]any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(string(said), "NaN", `"NaN"`)), &got); err != nil {
				t.Fatalf("%s: %v", said, err)
			}
			wantRuns(t, got)
			if text := fmt.Sprint(got[1]["train_loss"]); text != "[[1 1] [2 NaN]]" {
				t.Errorf("the loss of a job that diverged is %s", text)
			}
		})
	}
}

// What a server refuses is told with the reason and the next step, and without passwords.
func TestWhatAnMLflowServerRefuses(t *testing.T) {
	status, body := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, word, _ := r.BasicAuth(); user != "ann" || word != "canary" {
			t.Errorf("signed in as %s", user)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	at := MLflowServer{URL: strings.Replace(server.URL, "http://", "http://ann:canary@", 1)}
	check := func(kind disdel.Kind, says string) {
		t.Helper()
		err := at.Send(context.Background(), nil)
		text := fmt.Sprint(err) + " " + disdel.AsError(err).Hint
		if disdel.KindOf(err) != kind || !strings.Contains(text, says) || strings.Contains(text, "canary") {
			t.Errorf("%q, want %v with %q", text, kind, says)
		}
	}
	status, body = http.StatusUnauthorized, "You are not authenticated"
	check(disdel.Denied, "MLFLOW_TRACKING_TOKEN")
	status, body = http.StatusInternalServerError, `{"error_code":"INTERNAL_ERROR","message":"disk full"}`
	check(disdel.Unavailable, "INTERNAL_ERROR disk full")
	status, body = http.StatusNotFound, "<html>"
	check(disdel.Invalid, "check that this is the address of an mlflow server")
	status, body = http.StatusOK, "<html>"
	check(disdel.Invalid, "its answer is not that of MLflow")
	server.Close()
	check(disdel.Unavailable, "mlflow server --host")
	at.URL = "sqlite:///mlflow.db"
	check(disdel.Invalid, "--url http://HOST:PORT")
}

// Parameters that a failed send left out come with the next one. Those that the run has are not sent again: MLflow
// refuses another value.
func TestParametersComeAfterAFailedSend(t *testing.T) {
	var sent []mlflowPair
	created, refuses := false, true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Parameters []mlflowPair `json:"params"`
		}
		json.NewDecoder(r.Body).Decode(&asked)
		run := map[string]any{"info": map[string]any{"run_id": "r"}, "data": map[string]any{"params": sent}}
		answer := map[string]any{"experiment_id": "1", "run": run}
		switch path := r.URL.Path; {
		case strings.HasSuffix(path, "runs/search") && created:
			answer["runs"] = []any{run}
		case strings.HasSuffix(path, "runs/create"):
			created = true
		case strings.HasSuffix(path, "runs/log-batch") && len(asked.Parameters) > 0:
			if refuses {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			sent = append(sent, asked.Parameters...)
		}
		json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	r := disdel.Record{ID: "job-01kp0000000000000000000001", Status: disdel.StatusSucceeded, Created: time.Now()}
	r.Job.Training.Epochs = 7
	s := MLflowServer{URL: server.URL}
	if err := s.Send(t.Context(), []disdel.Record{r}); disdel.KindOf(err) != disdel.Unavailable {
		t.Fatal(err)
	}
	refuses = false
	for range 2 {
		if err := s.Send(t.Context(), []disdel.Record{r}); err != nil {
			t.Fatal(err)
		}
		if n := len(mlflowParameters(&r)); len(sent) != n || n == 0 {
			t.Errorf("%d parameters came, want %d", len(sent), n)
		}
	}
}
