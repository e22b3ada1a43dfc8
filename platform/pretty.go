package platform

import (
	"bytes"
	"encoding/json"
	"strings"
)

// pretty prints JSON as OpenWhisk does: objects over lines, lists on one, fields in their order.
func pretty(v json.RawMessage) []byte {
	var out bytes.Buffer
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	if printPretty(&out, dec, 0) != nil {
		return v
	}
	return out.Bytes()
}

func printPretty(out *bytes.Buffer, dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return printObject(out, dec, depth)
	case json.Delim('['):
		return printList(out, dec, depth)
	}
	return printScalar(out, token)
}

func printObject(out *bytes.Buffer, dec *json.Decoder, depth int) error {
	out.WriteString("{\n")
	for n := 0; dec.More(); n++ {
		if n > 0 {
			out.WriteString(",\n")
		}
		name, err := dec.Token()
		if err != nil {
			return err
		}
		out.WriteString(strings.Repeat("  ", depth+1))
		if err := printScalar(out, name); err != nil {
			return err
		}
		out.WriteString(": ")
		if err := printPretty(out, dec, depth+1); err != nil {
			return err
		}
	}
	out.WriteString("\n" + strings.Repeat("  ", depth) + "}")
	_, err := dec.Token()
	return err
}

func printList(out *bytes.Buffer, dec *json.Decoder, depth int) error {
	out.WriteByte('[')
	for n := 0; dec.More(); n++ {
		if n > 0 {
			out.WriteString(", ")
		}
		if err := printPretty(out, dec, depth); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	_, err := dec.Token()
	return err
}

func printScalar(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	out.Truncate(max(0, out.Len()-1)) // the line's end
	return err
}
