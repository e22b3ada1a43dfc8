package aggregator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/disdel/disdel"
	"github.com/disdel/disdel/internal/safetensors"
)

// The envelope of an update, little-endian:
//
//	 0  magic "DSDU"          24  member   u32
//	 4  version u16           28  attempt  u32
//	 6  length of job u16     32  fence    u64
//	 8  round   u32           40  samples  f64
//	12  level   u32           48  length of body u64
//	16  reserved u64          56  job, CRC32C of all before
//
// then the body, safetensors, and a CRC32C for each MiB of it.
const (
	magic       = "DSDU"
	wireVersion = 1
	fixedHeader = 56
	chunkSize   = 1 << 20
	maxBody     = 8 << 30
	maxJob      = 256
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode makes the bytes of an update.
func encode(u disdel.Update) ([]byte, error) {
	if !(u.Samples > 0) || math.IsInf(u.Samples, 0) || len(u.ID.Job) > maxJob {
		return nil, &disdel.Error{Kind: disdel.Invalid, Op: "write update", Job: u.ID.Job, Msg: fmt.Sprintf("%v stands for %g samples", u.ID, u.Samples)}
	}
	for _, t := range u.Weights {
		if i := notFinite(t.Data); i >= 0 {
			return nil, nonFinite(u.ID, t.Name, i)
		}
	}
	file := safetensors.FromWeights(u.Weights, nil)
	size, err := safetensors.Size(file)
	if err != nil {
		return nil, err
	}
	out := appendHeader(make([]byte, 0, fixedHeader+len(u.ID.Job)+4+size+4*(size/chunkSize+1)), u, size)
	start := len(out)
	buf := bytes.NewBuffer(out)
	if err := safetensors.Write(buf, file); err != nil {
		return nil, err
	}
	out = buf.Bytes()
	for b := out[start:]; len(b) > 0; b = b[min(chunkSize, len(b)):] {
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(b[:min(chunkSize, len(b))], castagnoli))
	}
	return out, nil
}

func appendHeader(out []byte, u disdel.Update, size int) []byte {
	out = out[:fixedHeader]
	copy(out, magic)
	le := binary.LittleEndian
	le.PutUint16(out[4:], wireVersion)
	le.PutUint16(out[6:], uint16(len(u.ID.Job)))
	le.PutUint32(out[8:], uint32(u.ID.Round))
	le.PutUint32(out[12:], uint32(u.ID.Level))
	le.PutUint32(out[24:], uint32(u.ID.Member))
	le.PutUint32(out[28:], uint32(u.Attempt))
	le.PutUint64(out[40:], math.Float64bits(u.Samples))
	le.PutUint64(out[48:], uint64(size))
	out = append(out, u.ID.Job...)
	return le.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

func refuse(id disdel.UpdateID, format string, args ...any) error {
	return &disdel.Error{
		Kind: disdel.Corrupt, Op: "read update " + id.String(), Job: id.Job, Msg: fmt.Sprintf(format, args...),
		Hint: "the update was damaged on its way or in the store; run the job again",
	}
}

func nonFinite(id disdel.UpdateID, tensor string, i int) error {
	return &disdel.Error{
		Kind: disdel.Diverged, Op: "check update " + id.String(), Job: id.Job,
		Msg: fmt.Sprintf("value %d of %s is not finite", i, tensor), Hint: "lower the learning rate",
	}
}

// decode reads an update and refuses it unless it is the one asked for, undamaged, of the shapes of like, and finite. The
// order of checks: lengths, header, identity, chunks, shapes, values.
func decode(data []byte, id disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	body, sums, u, err := decodeHeader(data, id)
	if err != nil {
		return u, err
	}
	for i := 0; i*chunkSize < len(body); i++ {
		chunk := body[i*chunkSize : min((i+1)*chunkSize, len(body))]
		if crc32.Checksum(chunk, castagnoli) != binary.LittleEndian.Uint32(sums[4*i:]) {
			return u, refuse(id, "chunk %d is damaged", i)
		}
	}
	f, err := safetensors.Parse(body)
	if err != nil {
		return u, err
	}
	if u.Weights, err = safetensors.ToWeights(f); err != nil {
		return u, err
	}
	if err := sameShapes(u.Weights, like); err != nil {
		return u, refuse(id, "%v", err)
	}
	for _, t := range u.Weights {
		if i := notFinite(t.Data); i >= 0 {
			return u, nonFinite(id, t.Name, i)
		}
	}
	return u, nil
}

// decodeHeader checks lengths, the header's checksum and the identity, and returns body and chunk sums.
func decodeHeader(data []byte, id disdel.UpdateID) (body, sums []byte, u disdel.Update, err error) {
	le := binary.LittleEndian
	if len(data) < fixedHeader || string(data[:4]) != magic {
		return nil, nil, u, refuse(id, "%d bytes that are no update", len(data))
	}
	if v := le.Uint16(data[4:]); v != wireVersion {
		return nil, nil, u, refuse(id, "version %d of the envelope is not supported", v)
	}
	head := fixedHeader + int(le.Uint16(data[6:]))
	if len(data) < head+4 || crc32.Checksum(data[:head], castagnoli) != le.Uint32(data[head:]) {
		return nil, nil, u, refuse(id, "the header is damaged")
	}
	n := le.Uint64(data[48:])
	if n > maxBody || uint64(len(data)) != uint64(head)+4+n+4*((n+chunkSize-1)/chunkSize) {
		return nil, nil, u, refuse(id, "%d bytes for a body of %d", len(data), n)
	}
	u = disdel.Update{
		ID: disdel.UpdateID{
			Job: disdel.JobID(data[fixedHeader:head]), Round: int(le.Uint32(data[8:])),
			Level: int(le.Uint32(data[12:])), Member: int(le.Uint32(data[24:])),
		},
		Attempt: int(le.Uint32(data[28:])), Samples: math.Float64frombits(le.Uint64(data[40:])),
	}
	if u.ID != id {
		return nil, nil, u, refuse(id, "it is update %v", u.ID)
	}
	if !(u.Samples > 0) || math.IsInf(u.Samples, 0) {
		return nil, nil, u, refuse(id, "it stands for %g samples", u.Samples)
	}
	at := head + 4
	return data[at : at+int(n)], data[at+int(n):], u, nil
}

// sameShapes compares names and shapes; like's data is not looked at.
func sameShapes(got, like disdel.Weights) error {
	if len(got) != len(like) {
		return fmt.Errorf("%d tensors, not %d", len(got), len(like))
	}
	for i, t := range got {
		if t.Name != like[i].Name || fmt.Sprint(t.Shape) != fmt.Sprint(like[i].Shape) {
			return fmt.Errorf("tensor %d is %s %v, not %s %v", i, t.Name, t.Shape, like[i].Name, like[i].Shape)
		}
	}
	return nil
}

// notFinite returns the index of the first NaN or infinity, or -1.
func notFinite(v []float32) int {
	for i, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}
