package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/disdel/disdel"
)

// claim makes a folder that no other process has.
func claim(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(folder, 0o777); err == nil {
			return nil
		}
	}
	if err == nil && len(entries) > 0 {
		err = errors.New("there is something in it")
	}
	if err != nil {
		return &disdel.Error{
			Kind: disdel.Invalid, Op: "export jobs", Msg: folder, Err: err, Hint: "name a folder that does not exist yet",
		}
	}
	return nil
}

// runName is the folder of a job: its name for people, and the end of its id, which tells it from others of the name.
func runName(r *disdel.Record) string {
	id := string(r.ID)
	return fmt.Sprintf("%s-%s", r.Job.Metadata.Name, id[max(0, len(id)-8):])
}

// tensorboard writes an event file for each job: records of TFRecord, each an Event of TensorFlow's event.proto.
func tensorboard(folder string, list []disdel.Record) error {
	for i := range list {
		r := &list[i]
		name := filepath.Base(runName(r)) // of a job of another version it may be anything
		if err := os.MkdirAll(filepath.Join(folder, name), 0o777); err != nil {
			return err
		}
		file := fmt.Sprintf("events.out.tfevents.%d.disdel", r.Created.Unix())
		if err := os.WriteFile(filepath.Join(folder, name, file), events(r), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// The numbers of fields, as TensorFlow's protocol buffers have them, with their wire types.
const (
	eventWallTime    = 1<<3 | 1 // double
	eventStep        = 2 << 3   // int64
	eventFileVersion = 3<<3 | 2 // string
	eventSummary     = 5<<3 | 2 // Summary
	summaryValue     = 1<<3 | 2 // Value
	valueTag         = 1<<3 | 2 // string
	valueSimple      = 2<<3 | 5 // float
)

// events are the bytes of a job's event file.
func events(r *disdel.Record) []byte {
	var out bytes.Buffer
	at := r.Created
	record(&out, blob(event(at, 0), eventFileVersion, []byte("brain.Event:2")))
	for i := range r.Rounds {
		round := &r.Rounds[i]
		at = at.Add(time.Duration(round.Duration))
		var summary []byte
		for _, s := range scalars {
			v := s.value(round)
			if v == nil {
				continue
			}
			value := blob(nil, valueTag, []byte(s.tag))
			value = binary.LittleEndian.AppendUint32(append(value, valueSimple), math.Float32bits(float32(*v)))
			summary = blob(summary, summaryValue, value)
		}
		record(&out, blob(event(at, round.Round+1), eventSummary, summary))
	}
	return out.Bytes()
}

// event is the beginning of an Event.
func event(at time.Time, step int) []byte {
	seconds := float64(at.UnixNano()) / 1e9
	out := binary.LittleEndian.AppendUint64([]byte{eventWallTime}, math.Float64bits(seconds))
	return binary.AppendUvarint(append(out, eventStep), uint64(step))
}

// blob appends a field of bytes.
func blob(to []byte, field byte, data []byte) []byte {
	return append(binary.AppendUvarint(append(to, field), uint64(len(data))), data...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record writes a record of TFRecord: its length, the length's sum, its bytes, their sum.
func record(out *bytes.Buffer, data []byte) {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	out.Write(length)
	out.Write(masked(length))
	out.Write(data)
	out.Write(masked(data))
}

// masked is a CRC-32C as TFRecord stores it, turned and shifted, so that sums of sums are no sums.
func masked(data []byte) []byte {
	sum := crc32.Checksum(data, castagnoli)
	return binary.LittleEndian.AppendUint32(nil, (sum>>15|sum<<17)+0xa282ead8)
}
