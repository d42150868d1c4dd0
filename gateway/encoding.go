package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// encoding is how the bytes of keys and values stand in JSON.
type encoding int8

const (
	asUTF8   encoding = iota // as a string
	asJSON                   // as the JSON text that they are
	asBase64                 // as a string of standard base64, padded
)

var encodings = map[string]encoding{"utf8": asUTF8, "json": asJSON, "base64": asBase64}

func parseEncoding(name string) (encoding, error) {
	e, ok := encodings[name]
	if !ok {
		return 0, fmt.Errorf("%w: encoding is utf8, json or base64, not %q", errBadRequest, shortened([]byte(name)))
	}
	return e, nil
}

// ofHeaders is how values of headers stand beside values like this: they are
// text also where values are JSON.
func (e encoding) ofHeaders() encoding {
	if e == asJSON {
		return asUTF8
	}
	return e
}

// decode is the bytes that a JSON value stands for; nil for null.
func (e encoding) decode(name string, value []byte) ([]byte, error) {
	switch {
	case isNull(value):
		return nil, nil
	case e == asJSON:
		return value, nil
	}
	s, err := stringOf(name, value)
	if err != nil || e == asUTF8 {
		return s, err
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(s)))
	n, err := base64.StdEncoding.Strict().Decode(out, s)
	if err != nil || bytes.ContainsAny(s, "\r\n") { // which the decoder skips
		return nil, fieldErrorf("%s is not base64", name)
	}
	return out[:n], nil
}

// appendField appends `"name":value`, and where the bytes are none of the
// encoding `"name":null,"name_base64":"..."`: nothing is lost.
func (e encoding) appendField(out []byte, name string, value []byte) []byte {
	out = append(append(append(out, '"'), name...), `":`...)
	if whole, ok := e.append(out, value); ok {
		return whole
	}
	out = append(append(append(out, `null,"`...), name...), `_base64":`...)
	out, _ = asBase64.append(out, value)
	return out
}

// append appends what stands for some bytes, if anything does.
func (e encoding) append(out, value []byte) (whole []byte, ok bool) {
	switch {
	case value == nil:
		return append(out, "null"...), true
	case e == asBase64:
		return append(base64.StdEncoding.AppendEncode(append(out, '"'), value), '"'), true
	case !utf8.Valid(value):
		return out, false
	case e == asUTF8:
		return appendQuoted(out, value), true
	case isNull(trim(value)): // it would be taken for a null
		return out, false
	}
	compact := bytes.NewBuffer(out)
	if json.Compact(compact, value) != nil { // on one line, whatever it was
		return out, false
	}
	return compact.Bytes(), true
}
