package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonRecord is a record as consume --json prints it, and produce --json reads
// it; HTTP has the same. Bytes that are not UTF-8 stand in the fields that end
// in _base64, and the others are null then; both null is null.
type jsonRecord struct {
	Partition   *int32  `json:"partition"`
	Offset      *int64  `json:"offset"`
	Timestamp   *int64  `json:"timestamp"` // milliseconds since 1970
	Key         *string `json:"key"`
	KeyBase64   string  `json:"key_base64,omitempty"`
	Value       *string `json:"value"`
	ValueBase64 string  `json:"value_base64,omitempty"`
	Headers     []any   `json:"headers"` // jsonPair, or jsonHeader where one is not UTF-8
}

// jsonPair is the name and the value of a header.
type jsonPair [2]*string

type jsonHeader struct {
	Name        *string `json:"name"`
	NameBase64  string  `json:"name_base64,omitempty"`
	Value       *string `json:"value"`
	ValueBase64 string  `json:"value_base64,omitempty"`
}

func newJSONRecord(r *kgo.Record) jsonRecord {
	j := jsonRecord{Partition: &r.Partition, Offset: &r.Offset, Timestamp: new(r.Timestamp.UnixMilli()), Headers: []any{}}
	j.Key, j.KeyBase64 = text(r.Key)
	j.Value, j.ValueBase64 = text(r.Value)
	for _, h := range r.Headers {
		var jh jsonHeader
		jh.Name, jh.NameBase64 = text([]byte(h.Key))
		jh.Value, jh.ValueBase64 = text(h.Value)
		if jh.NameBase64 == "" && jh.ValueBase64 == "" {
			j.Headers = append(j.Headers, jsonPair{jh.Name, jh.Value})
		} else {
			j.Headers = append(j.Headers, jh)
		}
	}
	return j
}

// text is how bytes stand in JSON.
func text(b []byte) (*string, string) {
	switch {
	case b == nil:
		return nil, ""
	case utf8.Valid(b):
		s := string(b)
		return &s, ""
	}
	return nil, base64.StdEncoding.EncodeToString(b)
}

// untext is text backwards.
func untext(field string, s *string, encoded string) ([]byte, error) {
	switch {
	case s != nil && encoded != "":
		return nil, fmt.Errorf("%s and %s_base64 are both given", field, field)
	case s != nil:
		return []byte(*s), nil
	case encoded == "":
		return nil, nil
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s_base64 is not base64", field)
	}
	return b, nil
}

// parseJSONRecord reads a line of JSON. The partition is -1 where it names none.
// A record needs a value, be it null: one that forgets it would delete its key
// from a compacted topic.
func parseJSONRecord(line []byte) (r *kgo.Record, err error) {
	var j struct {
		jsonRecord
		Value   json.RawMessage   `json:"value"`
		Headers []json.RawMessage `json:"headers"`
	}
	switch err := decodeJSON(line, &j); {
	case err != nil:
		return nil, err
	case j.Value == nil && j.ValueBase64 == "":
		return nil, errors.New(`it has no "value": null is one, and deletes the key from a compacted topic`)
	case j.Value != nil && json.Unmarshal(j.Value, &j.jsonRecord.Value) != nil:
		return nil, errors.New("value is neither text nor null: JSON that is to be a value is written as text")
	}
	r = &kgo.Record{Partition: -1}
	if j.Partition != nil {
		r.Partition = *j.Partition
	}
	if j.Timestamp != nil {
		r.Timestamp = time.UnixMilli(*j.Timestamp)
	}
	if r.Key, err = untext("key", j.Key, j.KeyBase64); err != nil {
		return nil, err
	}
	if r.Value, err = untext("value", j.jsonRecord.Value, j.ValueBase64); err != nil {
		return nil, err
	}
	for i, raw := range j.Headers {
		h, err := parseJSONHeader(raw)
		if err != nil {
			return nil, fmt.Errorf("header %d: %w", i+1, err)
		}
		r.Headers = append(r.Headers, h)
	}
	return r, nil
}

func parseJSONHeader(raw []byte) (h kgo.RecordHeader, err error) {
	var j jsonHeader
	if raw[0] == '[' {
		var pair []*string
		if err := decodeJSON(raw, &pair); err != nil || len(pair) != 2 {
			return h, errors.New("it is not a pair of a name and a value")
		}
		j.Name, j.Value = pair[0], pair[1]
	} else if err := decodeJSON(raw, &j); err != nil {
		return h, err
	}
	name, err := untext("name", j.Name, j.NameBase64)
	if err != nil {
		return h, err
	}
	if name == nil {
		return h, errors.New("it has no name")
	}
	value, err := untext("value", j.Value, j.ValueBase64)
	return kgo.RecordHeader{Key: string(name), Value: value}, err
}

// decodeJSON decodes all of some JSON, into fields that are all known, and says
// what is wrong without Go's names.
func decodeJSON(b []byte, to any) error {
	if !utf8.Valid(b) {
		return errors.New("it is not UTF-8: bytes stand in base64, in key_base64 and value_base64")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(to)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return errors.New("there is more than one JSON object")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if _, field, ok := strings.Cut(wrong.Field, "jsonRecord."); ok {
			wrong.Field = field
		}
		return fmt.Errorf("%q cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON object does not end")
	}
	return fmt.Errorf("it is not a record in JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
}
