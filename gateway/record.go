package gateway

import (
	"bytes"
	"fmt"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// maxHeaders bounds the headers of a record, which cost more in memory than
// in a body.
const maxHeaders = 1000

// incoming is a record of a request. Its bytes are the body's.
type incoming struct {
	batch.Record
	partition int32 // -1: not said
}

// recordSink takes the records of a body, in order.
type recordSink func(*incoming) error

// recordReader reads the records of a body and hands them on, each good until
// the next.
type recordReader struct {
	encoding encoding
	now      int64 // ms, of records that say no time
	record   incoming
	count    int
	add      recordSink
}

// readJSON reads {"records":[..],"encoding":".."}. An encoding that the URL
// gave is not contradicted.
func (d *recordReader) readJSON(body []byte, given bool) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	body = trim(body)
	if body[0] != '{' {
		return fieldErrorf(`the body is not an object like {"records":[{"value":"v"}]}`)
	}
	var records []byte
	err := members(body, func(name string, value []byte) error {
		switch name {
		case "records":
			records = value
		case "encoding":
			s, err := stringOf(name, value)
			if err != nil {
				return err
			}
			e, err := parseEncoding(string(s))
			if err == nil && given && e != d.encoding {
				return fmt.Errorf("%w: the encoding of the body is not that of the URL", errBadRequest)
			}
			d.encoding = e
			return err
		default:
			return unknownMember(name, "the body", "records and encoding")
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(records) == 0 || records[0] != '[':
		return fieldErrorf("\"records\" is not an array of records")
	}
	for object := range elements(records) {
		if err := d.next(object); err != nil {
			return err
		}
	}
	return nil
}

// readLines reads one record a line; blank lines are none.
func (d *recordReader) readLines(body []byte) error {
	for line := range bytes.Lines(body) {
		if line = trim(line); len(line) == 0 {
			continue
		}
		if err := checkJSON(line); err != nil {
			return wrongRecord(d.count, fmt.Errorf("%w; a line is one record, whole", err))
		}
		if err := d.next(line); err != nil {
			return err
		}
	}
	return nil
}

// next reads one record and hands it on.
func (d *recordReader) next(object []byte) error {
	err := d.decode(object)
	if err == nil {
		err = d.add(&d.record)
	}
	if err != nil {
		return wrongRecord(d.count, err)
	}
	d.count++
	return nil
}

func (d *recordReader) decode(object []byte) error {
	headers := d.record.Headers[:0]
	d.record = incoming{partition: -1}
	r := &d.record
	r.Timestamp = d.now
	key, value := field{name: "key", encoding: d.encoding}, field{name: "value", encoding: d.encoding}
	err := members(object, func(name string, v []byte) (err error) {
		for _, f := range []*field{&key, &value} {
			if known, err := f.take(name, v); known {
				return d.explain(err, v)
			}
		}
		switch name {
		case "headers":
			headers, err = d.headers(headers, v)
		case "timestamp", "partition", "offset":
			err = r.setNumber(name, v)
		default:
			err = unknownMember(name, "a record", "value, key, headers, timestamp, partition, value_base64 and key_base64")
		}
		return err
	})
	r.Key, r.Value, r.Headers = key.bytes, value.bytes, headers
	if err == nil && !value.given {
		err = fieldErrorf("it has no value; null is one, and deletes the key from a compacted topic")
	}
	return err
}

// explain says what is meant for JSON that stands where text has to.
func (d *recordReader) explain(err error, value []byte) error {
	if err != nil && d.encoding == asUTF8 && value[0] != '"' {
		return fieldErrorf("%v; JSON as it is goes with the encoding json", err)
	}
	return err
}

// setNumber sets what a number says, if it is not null. An offset is taken so
// that what was read can be appended, and is the log's to choose.
func (r *incoming) setNumber(name string, value []byte) error {
	if isNull(value) {
		return nil
	}
	bits, least := 64, int64(0)
	switch name {
	case "partition":
		bits = 32
	case "timestamp":
		least = batch.NoTimestamp
	}
	n, err := integer(name, value, bits)
	switch {
	case err != nil:
		return err
	case n < least:
		return fieldErrorf("%s is %d, which is less than %d", name, n, least)
	case name == "partition":
		r.partition = int32(n)
	case name == "timestamp":
		r.Timestamp = n
	}
	return nil
}

// headers reads an array of headers.
func (d *recordReader) headers(into []batch.RecordHeader, array []byte) ([]batch.RecordHeader, error) {
	if isNull(array) {
		return into, nil
	}
	if array[0] != '[' {
		return into, fieldErrorf("headers are not an array")
	}
	for one := range elements(array) {
		if len(into) == maxHeaders {
			return into, fieldErrorf("more than %d headers", maxHeaders)
		}
		h, err := d.header(one)
		if err != nil {
			return into, fmt.Errorf("header %d: %w", len(into), err)
		}
		into = append(into, h)
	}
	return into, nil
}

// header reads ["name","value"], or an object with fields name and value.
func (d *recordReader) header(one []byte) (h batch.RecordHeader, err error) {
	name, value := field{name: "name"}, field{name: "value", encoding: d.encoding.ofHeaders()}
	switch one[0] {
	case '[':
		n := 0
		for v := range elements(one) {
			switch n {
			case 0:
				_, err = name.take("name", v)
			case 1:
				_, err = value.take("value", v)
			}
			if err != nil {
				return h, err
			}
			n++
		}
		if n != 2 {
			return h, fieldErrorf("a header is a pair of a name and a value")
		}
	case '{':
		err = members(one, func(member string, v []byte) error {
			if known, err := name.take(member, v); known {
				return err
			}
			if known, err := value.take(member, v); known {
				return err
			}
			return unknownMember(member, "a header", "name, value, name_base64 and value_base64")
		})
	default:
		err = fieldErrorf("a header is a pair of a name and a value")
	}
	if err == nil && name.bytes == nil {
		err = fieldErrorf("a header has no name")
	}
	return batch.RecordHeader{Key: name.bytes, Value: value.bytes}, err
}

// field is one that is given in an encoding, or in base64 under another name:
// "value" or "value_base64".
type field struct {
	name     string
	encoding encoding
	bytes    []byte
	given    bool // null, perhaps
}

// take takes a member of an object, if it is the field's.
func (f *field) take(member string, value []byte) (known bool, err error) {
	e := f.encoding
	switch member {
	case f.name:
	case f.name + "_base64":
		e = asBase64
	default:
		return false, nil
	}
	got, err := e.decode(member, value)
	if err == nil && got != nil && f.bytes != nil {
		err = fieldErrorf("both %s and %s_base64 are given", f.name, f.name)
	}
	if f.given = true; got != nil {
		f.bytes = got
	}
	return true, err
}
