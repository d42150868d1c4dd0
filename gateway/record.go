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
	var records []byte
	err := members(trim(body), func(name string, value []byte) error {
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
			return unknownMember(name)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(records) == 0 || records[0] != '[':
		return fmt.Errorf("%w: \"records\" is not an array of records", errInvalidRecord)
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
			return wrongRecord(d.count, err)
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
		if known, err := key.take(name, v); known {
			return err
		}
		if known, err := value.take(name, v); known {
			return err
		}
		switch name {
		case "headers":
			headers, err = d.headers(headers, v)
		case "timestamp":
			if isNull(v) {
				return nil
			}
			if r.Timestamp, err = integer(name, v, 64); err == nil && r.Timestamp < 0 {
				err = fmt.Errorf("%w: a timestamp of %d ms", errInvalidRecord, r.Timestamp)
			}
		case "partition":
			if isNull(v) {
				return nil
			}
			var n int64
			if n, err = integer(name, v, 32); err == nil && n < 0 {
				err = fmt.Errorf("%w: partition %d", errInvalidRecord, n)
			}
			r.partition = int32(n)
		default:
			return unknownMember(name)
		}
		return err
	})
	r.Key, r.Value, r.Headers = key.bytes, value.bytes, headers
	if err == nil && !value.given {
		err = fmt.Errorf("%w: it has no value; null is one, and deletes the key from a compacted topic", errInvalidRecord)
	}
	return err
}

// headers reads an array of headers.
func (d *recordReader) headers(into []batch.RecordHeader, array []byte) ([]batch.RecordHeader, error) {
	if isNull(array) {
		return into, nil
	}
	if array[0] != '[' {
		return into, fmt.Errorf("%w: headers are not an array", errInvalidRecord)
	}
	for one := range elements(array) {
		if len(into) == maxHeaders {
			return into, fmt.Errorf("%w: more than %d headers", errInvalidRecord, maxHeaders)
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
			return h, fmt.Errorf("%w: a header is a pair of a name and a value", errInvalidRecord)
		}
	case '{':
		err = members(one, func(member string, v []byte) error {
			if known, err := name.take(member, v); known {
				return err
			}
			if known, err := value.take(member, v); known {
				return err
			}
			return unknownMember(member)
		})
	default:
		err = fmt.Errorf("%w: a header is a pair of a name and a value", errInvalidRecord)
	}
	if err == nil && name.bytes == nil {
		err = fmt.Errorf("%w: a header has no name", errInvalidRecord)
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
		err = fmt.Errorf("%w: both %s and %s_base64 are given", errInvalidRecord, f.name, f.name)
	}
	if f.given = true; got != nil {
		f.bytes = got
	}
	return true, err
}
