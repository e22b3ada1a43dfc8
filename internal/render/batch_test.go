package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/controller/jobfile"
	"github.com/disdel/disdel/internal/terminal"
	"github.com/disdel/disdel/service/batch"
)

func after(s float64) disdel.Millis { return disdel.Millis(s * float64(time.Second)) }

// batchRow is a job of a matrix over the batch size.
func batchRow(i int, status disdel.Status, accuracy float64) batch.Row {
	r := batch.Row{
		Job: disdel.JobID(fmt.Sprintf("job-%026d", i)), Name: fmt.Sprintf("digits-%d", i+1), Status: status, Of: 3,
		Choices:   []jobfile.Choice{{Path: "training.batchSize", Value: fmt.Sprint(16 << i)}},
		Submitted: after(0.1), Workers: 2,
	}
	if status >= disdel.StatusRunning {
		r.Started, r.Room = after(float64(1+i)), 256*disdel.MB
		for round := range 2 {
			r.Rounds = round + 1
			r.Curve = append(r.Curve, batch.Point{
				Epochs: round + 1, TrainLoss: 1 - accuracy/2, Loss: new(1 - accuracy),
				Accuracy: new(accuracy - 0.1*float64(1-round)),
			})
		}
	}
	if status >= disdel.StatusSucceeded {
		r.Ended, r.CostGBs, r.Activations, r.Cold, r.Peak = after(float64(4+i)), 1.5, 9, 3, 12*disdel.MB
	}
	return r
}

func viewOf(rows ...batch.Row) *batch.View {
	return &batch.View{Rows: rows, Pool: disdel.GB, Now: batch.Sample{
		At: after(5), Reserved: 512 * disdel.MB, Resident: 40 * disdel.MB, Running: 2, Waiting: 1,
	}}
}

// However narrow or low a terminal is, the table takes its own lines back, and the line of all jobs is in it.
func TestTheTableOfABatchLeavesNoStaleLines(t *testing.T) {
	var rows []batch.Row
	for i := range 12 {
		states := []disdel.Status{disdel.StatusSucceeded, disdel.StatusRunning, disdel.StatusQueued}
		rows = append(rows, batchRow(i, states[i%3], 0.9))
	}
	for _, columns := range []int{20, 40, 80, 200} {
		for _, height := range []int{6, 10, 30} {
			s := &screen{columns: columns}
			u := terminal.New(nil, nil, s)
			u.Live, u.Size = true, func() (int, int) { return columns, height }
			table := NewBatchTable(u)
			for range 3 {
				table.last = time.Time{}
				table.Follow(viewOf(rows...))
				if len(s.rows) > height-1 {
					t.Errorf("%d by %d: %d rows", columns, height, len(s.rows))
				}
				if last := s.rows[len(s.rows)-1]; !strings.HasPrefix(last, "5.0 s: 4 of 12 hav") {
					t.Errorf("%d by %d ends with %q", columns, height, last)
				}
			}
			table.Done()
			if len(s.rows) > 0 {
				t.Errorf("%d by %d: left behind:\n%s", columns, height, strings.Join(s.rows, "\n"))
			}
		}
	}
}

// Without a terminal each job has a line when it becomes something else, and none twice.
func TestABatchIsToldInLines(t *testing.T) {
	var out bytes.Buffer
	table := NewBatchTable(terminal.New(nil, nil, &out))
	waiting := batchRow(0, disdel.StatusQueued, 0)
	admitted := waiting
	admitted.Status, admitted.Started = disdel.StatusAdmitted, after(1)
	behind := batchRow(0, disdel.StatusRunning, 0.9)
	behind.Behind = "it fell behind"
	stopped := behind
	stopped.Status, stopped.Ended = disdel.StatusCanceled, after(4)
	for _, r := range []batch.Row{
		waiting, waiting, admitted, batchRow(0, disdel.StatusRunning, 0.9), behind, stopped, stopped,
	} {
		table.Follow(viewOf(r))
	}
	want := `digits-1 (batchSize 16)  queued as job-00000000000000000000000000
digits-1 (batchSize 16)  starts after 0.9 s in the queue
digits-1 (batchSize 16)  stopped after 3.0 s  2 epochs  train loss 0.5500  held-out loss 0.1000  ` +
		"accuracy 0.9000  it fell behind\n"
	if out.String() != want {
		t.Errorf("%s", &out)
	}
}

func batchSummary() *batch.Summary {
	behind := batchRow(1, disdel.StatusCanceled, 0.5)
	behind.Behind = "it fell behind"
	failed := batchRow(2, disdel.StatusFailed, 0.4)
	failed.Failure = &disdel.Error{Kind: disdel.OOM, Msg: "it used 130 MB", Hint: "--set resources.memory=200MB"}
	refused := batch.Row{
		Name: "<b>large</b>", Status: disdel.StatusFailed, Refused: true, Submitted: after(1), Ended: after(1),
	}
	refused.Failure, refused.Tenant = &disdel.Error{Kind: disdel.OverLimit, Msg: "it would wait for ever"}, "alice"
	best := batchRow(0, disdel.StatusSucceeded, 0.9)
	best.Model = "digits-1:v1"
	return &batch.Summary{
		By: batch.ByAccuracy, Jobs: []batch.Row{best, behind, failed, refused}, Makespan: after(6), Waited: after(1.5),
		Ran: after(3), Counts: batch.Counts{Succeeded: 1, Behind: 1, Failed: 2}, Activations: 27, Cold: 9, CostGBs: 4.5,
		Tenants: []batch.Tenant{{Jobs: 3, Counts: batch.Counts{Succeeded: 1}}, {Name: "alice", Jobs: 1}},
		Pool: batch.Pool{
			Bytes: disdel.GB, MostReserved: 512 * disdel.MB, MostResident: 40 * disdel.MB, ReservedGBs: 3, ResidentGBs: 0.5,
			Samples: []batch.Sample{{}, {At: after(1), Reserved: 512 * disdel.MB, Resident: 40 * disdel.MB}, {At: after(6)}},
		},
	}
}

func TestABatchIsPrinted(t *testing.T) {
	var out bytes.Buffer
	PrintBatch(&out, batchSummary())
	got := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"JOB batchSize STATUS ACCURACY LOSS EPOCHS WAITED TIME PEAK COLD GB-S MODEL ID",
		"digits-1 16 succeeded 0.9000 0.1000 2 0.90 s 3.00 s 12.0 MB 3/9 1.50 digits-1:v1 job-00000000000000000000000000",
		"digits-2 32 stopped", "digits-2: it fell behind", "digits-3: it used 130 MB --set resources.memory=200MB",
		"<b>large</b> - refused - - 0 0.00 s 0.00 s", "<b>large</b>: it would wait for ever",
		"jobs 4: 1 succeeded, 1 stopped early, 2 failed", "best digits-1 (batchSize 16): accuracy 0.9000, digits-1:v1",
		"makespan 6.00 s", "on average waited 1.50 s, ran 3.00 s", "activations 27: 33.3 % cold",
		"pool reserved 512 MB at most of 1.00 GB, resident 40.0 MB; over time 3.00 and 0.50 GB-s",
		"tenant - 3: 1 succeeded", "tenant alice 1:",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// The page is one file with all plots, and what names hold is no markup of it.
func TestTheTableOfABatchIsAPage(t *testing.T) {
	var out bytes.Buffer
	if err := BatchPage(batchSummary()).HTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"Batch of 4 jobs", "Pool over time", "Jobs over time", "Held-out accuracy by epoch", "reserved by grants",
		"digits-1 (batchSize 16)", "digits-2: it fell behind", "&lt;b&gt;large&lt;/b&gt;", "of the home itself",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, bad := range []string{"<b>", "NaN", "<script", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if n := strings.Count(page, "<svg viewBox=\"0 0 480"); n != 3 {
		t.Errorf("%d plots", n)
	}
	out.Reset()
	if err := BatchPage(&batch.Summary{}).HTML(&out); err != nil || strings.Contains(out.String(), "NaN") {
		t.Errorf("an empty batch: %v", err)
	}
}
