package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/blobs"
	"github.com/disdel/disdel/internal/safetensors"
)

// The arrays of a file of answers.
const (
	labelArray       = "label"       // of each row, as the data set has it
	probabilityArray = "probability" // [rows classes]
	classArray       = "class"       // the most probable one
	targetArray      = "target"      // of each sparse row, as the data set has it
	predictionArray  = "prediction"  // of each sparse row
)

// Said is what is known of answers before there is one.
type Said struct {
	Classes int               // probabilities of each row; 0: of sparse rows, which have a prediction each
	Labels  []int32           // by row, of dense ones
	Targets []float32         // by row, of sparse ones
	Notes   map[string]string // kept in the file
}

// Rows is how many there are.
func (d *Said) Rows() int { return max(len(d.Labels), len(d.Targets)) }

// file is the file of answers without their values.
func (d *Said) file() safetensors.File {
	n := d.Rows()
	f := safetensors.File{Metadata: d.Notes}
	if d.Classes == 0 {
		f.Tensors = []safetensors.Tensor{
			{Name: targetArray, DType: safetensors.F32, Shape: []int{n}},
			{Name: predictionArray, DType: safetensors.F32, Shape: []int{n}},
		}
		return f
	}
	f.Tensors = []safetensors.Tensor{
		{Name: labelArray, DType: safetensors.I32, Shape: []int{n}},
		{Name: probabilityArray, DType: safetensors.F32, Shape: []int{n, d.Classes}},
		{Name: classArray, DType: safetensors.I32, Shape: []int{n}},
	}
	return f
}

// WriteAnswers writes a file of answers, which each hands over in the order of the rows, as many at a time as it likes:
// Classes values of each row, or one of a sparse row. It holds none of them. It returns Canceled where nobody waits for
// the answers, Internal where they are not those of all rows, and what each returns.
func (s *Store) WriteAnswers(ctx context.Context, key string, of Said,
	each func(put func(values []float32) error) error,
) (ref disdel.AnswersRef, err error) {
	if err := s.wanted(ctx, key); err != nil {
		return ref, err
	}
	sum, size, unmade := sha256.New(), new(counter), error(nil)
	err = blobs.Write(ctx, s.bucket, key, func(out io.Writer) error {
		w := &answering{Said: of, to: io.MultiWriter(out, sum, size), key: key}
		if unmade = w.all(each); unmade == nil {
			unmade = s.wanted(ctx, key)
		}
		return unmade
	})
	if unmade == nil { // what else went wrong is the bucket's
		err = blobs.Wrap(err, "write answers", key)
	}
	if err == nil {
		err = s.unlessLate(ctx, key)
	}
	if err != nil {
		s.removeEmpty(path.Dir(key))
		return ref, err
	}
	return disdel.AnswersRef{
		Key: key, Checksum: checksum(sum.Sum(nil)), Rows: of.Rows(), Size: disdel.Bytes(*size),
	}, nil
}

// removeEmpty removes the folder of a bucket on files that was made anew after its answers had been discarded.
func (s *Store) removeEmpty(folder string) {
	if s.folder != "" {
		os.Remove(filepath.Join(s.folder, filepath.FromSlash(folder))) //nolint:errcheck // fails unless it is empty
	}
}

// answering is a file of answers on its way.
type answering struct {
	Said
	to      io.Writer
	key     string
	classes []int32 // of the rows so far
	rows    int
	buffer  []byte
}

func (w *answering) all(each func(put func([]float32) error) error) error {
	if err := safetensors.WriteHeader(w.to, w.file()); err != nil {
		return err
	}
	if err := w.write(int32Bytes(w.buffer[:0], w.Labels)); err != nil {
		return err
	}
	if err := w.write(float32Bytes(w.buffer[:0], w.Targets)); err != nil {
		return err
	}
	if err := each(w.put); err != nil {
		return err
	}
	if w.rows != w.Rows() {
		return w.odd(w.rows)
	}
	return w.write(int32Bytes(w.buffer[:0], w.classes))
}

// put writes the answers for some rows.
func (w *answering) put(values []float32) error {
	width := max(1, w.Classes)
	n := len(values) / width
	if w.rows += n; n*width != len(values) || w.rows > w.Rows() {
		return w.odd(w.rows)
	}
	for i := 0; w.Classes > 0 && i < n; i++ {
		w.classes = append(w.classes, int32(disdel.Largest(values[i*width:(i+1)*width])))
	}
	return w.write(float32Bytes(w.buffer[:0], values))
}

func (w *answering) write(data []byte) error {
	w.buffer = data
	_, err := w.to.Write(data)
	return blobs.Wrap(err, "write answers", w.key)
}

func (w *answering) odd(n int) error {
	return &disdel.Error{
		Kind: disdel.Internal, Op: "write answers", Msg: fmt.Sprintf("%d answers for %d rows", n, w.Rows()),
	}
}

// Answers are what a model said of rows, in their order.
type Answers struct {
	Classes, Labels []int32
	Probabilities   []float32 // [rows classes]

	Predictions, Targets []float32 // of sparse rows, instead
}

// ReadAnswers reads a file of answers with so many classes, 0 of sparse rows. It returns Corrupt for one that is not
// what the action said that it had written.
func (s *Store) ReadAnswers(ctx context.Context, ref disdel.AnswersRef, classes int) (a Answers, err error) {
	data, err := blobs.ReadAll(ctx, s.bucket, ref.Key)
	if err != nil {
		return a, blobs.Wrap(err, "read answers", ref.Key)
	}
	sum := sha256.Sum256(data)
	if got := checksum(sum[:]); got != ref.Checksum {
		return a, badAnswers(ref, "it has checksum "+got+", not "+ref.Checksum)
	}
	f, err := safetensors.Parse(data)
	if err != nil {
		return a, err
	}
	length := map[string]int{
		labelArray: ref.Rows, classArray: ref.Rows, probabilityArray: ref.Rows * classes, targetArray: ref.Rows,
		predictionArray: ref.Rows,
	}
	for _, t := range f.Tensors {
		if len(t.Data) != 4*length[t.Name] {
			return a, badAnswers(ref, fmt.Sprintf("%.40q has %d bytes for %d rows", t.Name, len(t.Data), ref.Rows))
		}
		switch t.Name {
		case labelArray:
			a.Labels = int32s(t.Data)
		case classArray:
			a.Classes = int32s(t.Data)
		case probabilityArray:
			a.Probabilities = float32s(t.Data)
		case targetArray:
			a.Targets = float32s(t.Data)
		case predictionArray:
			a.Predictions = float32s(t.Data)
		}
	}
	if classes > 0 && (a.Classes == nil || a.Labels == nil || a.Probabilities == nil) ||
		classes == 0 && (a.Predictions == nil || a.Targets == nil) {
		return a, badAnswers(ref, "an array is missing")
	}
	return a, nil
}

func badAnswers(ref disdel.AnswersRef, why string) error {
	return &disdel.Error{Kind: disdel.Corrupt, Op: "read answers", Msg: ref.Key + ": " + why, Hint: "ask again"}
}

// RemoveAnswers deletes a file of answers that was read.
func (s *Store) RemoveAnswers(ctx context.Context, ref disdel.AnswersRef) error {
	return blobs.Wrap(s.bucket.Delete(ctx, ref.Key), "remove answers", ref.Key)
}

func int32Bytes(to []byte, values []int32) []byte {
	for _, v := range values {
		to = binary.LittleEndian.AppendUint32(to, uint32(v))
	}
	return to
}

func float32Bytes(to []byte, values []float32) []byte {
	for _, v := range values {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(v))
	}
	return to
}

func int32s(data []byte) []int32 {
	out := make([]int32, len(data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func float32s(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// wantedFile stands beside answers for as long as somebody waits for them.
const wantedFile = "wanted"

// WantAnswers has answers below a folder be wanted: none are written before.
func (s *Store) WantAnswers(ctx context.Context, folder string) error {
	key := path.Join(folder, wantedFile)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, nil), "ask for answers", key)
}

// EndAnswers has no more answers be written below a folder, by actions that nobody waits for any more.
func (s *Store) EndAnswers(ctx context.Context, folder string) error {
	return s.takeAway(ctx, "end answers", path.Join(folder, wantedFile))
}

// KeepAnswers is EndAnswers of a folder where nothing but these answers stays: an attempt that somebody gave up may
// have come to its end all the same, and answers are read by their folder too.
func (s *Store) KeepAnswers(ctx context.Context, folder string, kept []disdel.AnswersRef) error {
	if err := s.EndAnswers(ctx, folder); err != nil {
		return err
	}
	for o, err := range s.bucket.List(ctx, folder+"/") {
		if err != nil {
			return blobs.Wrap(err, "keep answers", folder)
		}
		if slices.ContainsFunc(kept, func(r disdel.AnswersRef) bool { return r.Key == o.Key }) {
			continue
		}
		if err := s.takeAway(ctx, "keep answers", o.Key); err != nil {
			return err
		}
	}
	return nil
}

// DiscardAnswers deletes all answers below a folder, and has none be written later.
func (s *Store) DiscardAnswers(ctx context.Context, folder string) error {
	if err := s.EndAnswers(ctx, folder); err != nil {
		return err
	}
	return s.Discard(ctx, folder)
}

// wanted returns Canceled unless somebody waits for answers under a key.
func (s *Store) wanted(ctx context.Context, key string) error {
	_, err := s.bucket.Size(ctx, path.Join(path.Dir(key), wantedFile))
	if err = blobs.Wrap(err, "write answers", key); disdel.KindOf(err) == disdel.NotFound {
		return &disdel.Error{Kind: disdel.Canceled, Op: "write answers", Msg: "nobody waits for them any more"}
	}
	return err
}

// unlessLate takes a file back that was written while somebody gave its answers up: he ends that they are wanted and
// then looks for files, so that either he has seen this one, or it is seen here that they are wanted no more.
func (s *Store) unlessLate(ctx context.Context, key string) error {
	err := s.wanted(ctx, key)
	if err != nil {
		err = errors.Join(err, s.takeAway(context.WithoutCancel(ctx), "write answers", key))
	}
	return err
}
