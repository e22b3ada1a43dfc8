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
	labelArray       = "label"       // class of each row, as the data set has it
	probabilityArray = "probability" // [rows classes]
	classArray       = "class"       // the most probable one
	targetArray      = "target"      // numbers of each row, as the data set has them
	predictionArray  = "prediction"  // of them
)

// AnswersHeader is what is known about answers before the model gives the first one.
type AnswersHeader struct {
	Classes int               // probabilities of each row; 0: rows have numbers
	Numbers int               // predictions of each row, where Classes is 0; 0: one
	Labels  []int32           // by row, of rows with classes
	Targets []float32         // as many of each row as predictions
	Notes   map[string]string // kept in the file
}

// Rows is the number of answers.
func (d *AnswersHeader) Rows() int { return max(len(d.Labels), len(d.Targets)/max(1, d.Numbers)) }

// file is the file of answers without their values.
func (d *AnswersHeader) file() safetensors.File {
	n := d.Rows()
	f := safetensors.File{Metadata: d.Notes}
	if d.Classes == 0 {
		shape := []int{n}
		if d.Numbers > 1 {
			shape = []int{n, d.Numbers}
		}
		f.Tensors = []safetensors.Tensor{
			{Name: targetArray, DType: safetensors.F32, Shape: shape},
			{Name: predictionArray, DType: safetensors.F32, Shape: shape},
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

// WriteAnswers writes a file of answers. each passes the answers to put in the order of the rows, in pieces of any
// size: one value for each class of a row, or one value for a sparse row. WriteAnswers holds none of them in memory. It
// returns Canceled if nobody waits for the answers any more, Internal if answers are missing, and the error of each.
func (s *Store) WriteAnswers(ctx context.Context, key string, header AnswersHeader,
	each func(put func(values []float32) error) error,
) (ref disdel.AnswersRef, err error) {
	if err := s.wanted(ctx, key); err != nil {
		return ref, err
	}
	sum, size, unmade := sha256.New(), new(counter), error(nil)
	err = blobs.Write(ctx, s.bucket, key, func(out io.Writer) error {
		w := &answering{AnswersHeader: header, to: io.MultiWriter(out, sum, size), key: key}
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
		Key: key, Checksum: checksum(sum.Sum(nil)), Rows: header.Rows(), Size: disdel.Bytes(*size),
	}, nil
}

// removeEmpty removes a folder on disk that was created again after its answers had been discarded.
func (s *Store) removeEmpty(folder string) {
	if s.folder != "" {
		os.Remove(filepath.Join(s.folder, filepath.FromSlash(folder))) //nolint:errcheck // fails unless it is empty
	}
}

// answering writes one file of answers.
type answering struct {
	AnswersHeader
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
	width := max(1, w.Classes, w.Numbers)
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

// Answers are the answers of a model for rows, in the order of the rows.
type Answers struct {
	Classes, Labels []int32
	Probabilities   []float32 // [rows classes]

	Predictions, Targets []float32 // [rows numbers] instead; of networks standardised
}

// ReadAnswers reads a file of answers with the given number of classes of each row; or, with 0, of numbers. It returns
// Corrupt for a file that differs from the one the action reported.
func (s *Store) ReadAnswers(ctx context.Context, ref disdel.AnswersRef, classes, numbers int) (a Answers, err error) {
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
		labelArray: ref.Rows, classArray: ref.Rows, probabilityArray: ref.Rows * classes,
		targetArray: ref.Rows * numbers, predictionArray: ref.Rows * numbers,
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

// RemoveAnswers deletes a file of answers.
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

// wantedFile lies beside answers while somebody waits for them.
const wantedFile = "wanted"

// WantAnswers allows actions to write answers below a folder. Without it they write none.
func (s *Store) WantAnswers(ctx context.Context, folder string) error {
	key := path.Join(folder, wantedFile)
	return blobs.Wrap(blobs.WriteAll(ctx, s.bucket, key, nil), "ask for answers", key)
}

// EndAnswers stops actions from writing answers below a folder, because nobody waits for them any more.
func (s *Store) EndAnswers(ctx context.Context, folder string) error {
	return s.deleteIfThere(ctx, "end answers", path.Join(folder, wantedFile))
}

// KeepAnswers is EndAnswers, and deletes all other files of the folder: an abandoned attempt may have finished anyway,
// and readers list the whole folder.
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
		if err := s.deleteIfThere(ctx, "keep answers", o.Key); err != nil {
			return err
		}
	}
	return nil
}

// DiscardAnswers deletes all answers below a folder and stops actions from writing more.
func (s *Store) DiscardAnswers(ctx context.Context, folder string) error {
	if err := s.EndAnswers(ctx, folder); err != nil {
		return err
	}
	return s.Discard(ctx, folder)
}

// wanted returns Canceled if nobody waits for the answers under a key.
func (s *Store) wanted(ctx context.Context, key string) error {
	_, err := s.bucket.Size(ctx, path.Join(path.Dir(key), wantedFile))
	if err = blobs.Wrap(err, "write answers", key); disdel.KindOf(err) == disdel.NotFound {
		return &disdel.Error{Kind: disdel.Canceled, Op: "write answers", Msg: "nobody waits for them any more"}
	}
	return err
}

// unlessLate deletes a file that was written while its answers were given up. The other side first removes wantedFile
// and then lists the folder. So either it has seen this file, or this function sees that wantedFile is gone.
func (s *Store) unlessLate(ctx context.Context, key string) error {
	err := s.wanted(ctx, key)
	if err != nil {
		err = errors.Join(err, s.deleteIfThere(context.WithoutCancel(ctx), "write answers", key))
	}
	return err
}
