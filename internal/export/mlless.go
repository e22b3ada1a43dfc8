package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/files"
)

// MLLess' prices (its section 6.1, us-east in April 2021).
const (
	dollarsPerGBs  = 0.000017
	redisPerSecond = 0.17 / 3600
)

// summary is PREFIX.json: times in s, costs in dollars. There is no broker; what MLLess' supervisor does is done by
// aggregations and evaluations.
type summary struct {
	Total     float64 `json:"total_train_time"`
	Functions float64 `json:"acc_functions_time"`
	Super     float64 `json:"super_time"`
	Cost      float64 `json:"functions_cost"`
	Redis     float64 `json:"redis_cost"`
	Broker    float64 `json:"rabbitmq_cost"`
	All       float64 `json:"total_estimated_cost"`
}

// MLLessFiles is what was written: a document of -o json.
type MLLessFiles struct {
	Job   disdel.JobID `json:"job"`
	Files []string     `json:"files"`
}

// WriteMLLess writes a record as the three files that MLLess writes: PREFIX.json, PREFIX_loss-time-history.csv and
// PREFIX_step-time-decomposition.csv, with the headers and units of MLLess. The values differ in three points: MLLess
// counts reads of Redis as its broker's, leaves the fetching of batches out of the total, and shows one worker. It
// returns the names of the files. It returns Invalid for a record without steps, and for a file that exists or cannot
// be created.
func WriteMLLess(prefix string, r *disdel.Record) (w MLLessFiles, err error) {
	if !stepped(r) {
		return w, &disdel.Error{
			Kind: disdel.Invalid, Op: "export record", Job: r.ID, Msg: "its workers exchanged nothing after steps",
			Hint: "submit it with --set 'distribution.exchange={threshold: 0.7}'",
		}
	}
	head, err := json.MarshalIndent(summarise(r), "", "  ")
	if err != nil {
		return w, err
	}
	w.Job = r.ID
	losses, parts := tables(r)
	for _, f := range []struct {
		name string
		data []byte
	}{
		{prefix + ".json", append(head, '\n')},
		{prefix + "_loss-time-history.csv", losses},
		{prefix + "_step-time-decomposition.csv", parts},
	} {
		if err := create(f.name, f.data); err != nil {
			return w, err
		}
		w.Files = append(w.Files, f.name)
	}
	return w, nil
}

func stepped(r *disdel.Record) bool {
	for i := range r.Rounds {
		if c := r.Rounds[i].Steps; c != nil && len(c.Stretches) > 0 {
			return true
		}
	}
	return false
}

func create(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		return nil
	}
	return &disdel.Error{
		Kind: disdel.Invalid, Op: "export record", Msg: name, Err: files.Plain(err),
		Hint: "name files that do not exist yet, in a folder that does",
	}
}

func summarise(r *disdel.Record) summary {
	s := summary{Total: r.Phases.Total.Seconds(), Cost: dollarsPerGBs * r.MeteredCost()}
	for i := range r.Activations {
		seconds := max(0, r.Activations[i].Duration).Seconds()
		if r.Activations[i].Task == disdel.TaskTrain {
			s.Functions += seconds
		} else {
			s.Super += seconds
		}
	}
	s.Redis = redisPerSecond * s.Total
	s.All = s.Cost + s.Redis
	return s
}

// tables are the two files of steps. A line is a stretch of the job's steps that follow each other, and has the number
// of the last of them: a record keeps some tens of a round.
func tables(r *disdel.Record) (losses, parts []byte) {
	var first, second bytes.Buffer
	loss, part := csv.NewWriter(&first), csv.NewWriter(&second)
	writeRow(loss, "step", "loss", "time")
	writeRow(part, "step", "t_fetch_minibatch", "t_process", "t_generate_updates", "t_write_update", "t_read_updates",
		"t_redis_read_updates", "t_rabbit_read_updates", "t_process_updates", "step_total_time")
	before := 0
	for i := range r.Rounds {
		if r.Rounds[i].Steps == nil {
			continue
		}
		last := before
		for _, s := range r.Rounds[i].Steps.Stretches {
			last = before + s.Last
			step := strconv.Itoa(last)
			if s.Rows > 0 {
				writeRow(loss, step, mllessNumber(s.Loss), mllessNumber(float64(s.End.Sub(r.Created))/float64(time.Second)))
			}
			writeRow(part, step, ms(s.Fetch), ms(s.Compute), ms(s.Select), ms(s.Write), ms(s.Wait+s.Read), ms(s.Read),
				ms(s.Wait), ms(s.Apply), ms(s.Total()))
		}
		before = last
	}
	loss.Flush()
	part.Flush()
	return first.Bytes(), second.Bytes()
}

func writeRow(w *csv.Writer, fields ...string) {
	w.Write(fields) //nolint:errcheck // a buffer takes anything
}

func mllessNumber(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

// ms is so many ms in s.
func ms(v float64) string { return mllessNumber(v / 1000) }
