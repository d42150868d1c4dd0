package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

const (
	rawPrefix    = "Record-"
	headerPrefix = rawPrefix + "Header-"
)

// noRawHeaders refuses, beside records in JSON, what is of a raw record.
func noRawHeaders(h http.Header, kind string) error {
	for name := range h {
		if strings.HasPrefix(name, rawPrefix) {
			return fmt.Errorf("%w: %s is of a raw record; in %s keys and headers are the records' own, and JSON that is to be one record, as it is, needs another Content-Type",
				errBadRequest, name, kind)
		}
	}
	return nil
}

// rawRecord is a request as one record: the body is its value, Record-Key its
// key, each Record-Header-Name a header "name". A server gives no order of
// headers, so they are sorted by name; those of one name keep theirs. The
// content type is a header of the record.
func rawRecord(h http.Header, body []byte, now int64) (*incoming, error) {
	r := &incoming{partition: -1}
	r.Timestamp = now
	if r.Value = body; body == nil {
		r.Value = []byte{}
	}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		as, isHeader := strings.CutPrefix(name, headerPrefix)
		switch {
		case name == "Content-Type":
			as = name
		case name == "Record-Key":
			if len(h[name]) > 1 {
				return nil, fmt.Errorf("%w: more than one Record-Key", errBadRequest)
			}
			r.Key = []byte(h[name][0])
			continue
		case !isHeader && strings.HasPrefix(name, rawPrefix):
			return nil, fmt.Errorf("%w: %s means nothing; a raw record takes Record-Key and %s*", errBadRequest, name, headerPrefix)
		case !isHeader:
			continue
		}
		for _, value := range h[name] {
			r.Headers = append(r.Headers, batch.RecordHeader{Key: []byte(strings.ToLower(as)), Value: []byte(value)})
		}
	}
	return r, nil
}
