package gateway

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/siltstone-io/siltstone"
)

const (
	defaultLimit    = 1000
	defaultMaxBytes = 1 << 20
)

// atOffset is a time that nobody asks for: the read begins at an offset.
const atOffset = math.MinInt64

// readQuery is what a read asks for.
type readQuery struct {
	time            int64 // ms, or a special one; atOffset: offset counts
	offset          siltstone.Offset
	limit, maxBytes int
	wait            time.Duration
	encoding        encoding
	isolation       siltstone.Isolation
}

var readParams = []string{"offset", "timestamp", "limit", "max_bytes", "wait", "encoding", "isolation"}

func parseReadQuery(values url.Values, limits Limits) (readQuery, error) {
	q := readQuery{
		time: siltstone.TimeEarliest, limit: defaultLimit, maxBytes: min(defaultMaxBytes, limits.ReplyBytes), isolation: siltstone.ReadCommitted,
	}
	if values.Has("offset") && values.Has("timestamp") {
		return q, fmt.Errorf("%w: both offset and timestamp are given", errBadRequest)
	}
	for name := range values {
		if err := q.set(name, values.Get(name)); err != nil {
			return q, err
		}
	}
	q.maxBytes = min(q.maxBytes, limits.ReplyBytes)
	q.wait = min(q.wait, limits.Wait)
	return q, nil
}

// set sets what one parameter says.
func (q *readQuery) set(name, value string) (err error) {
	var n int64
	switch name {
	case "offset":
		switch value {
		case "earliest":
			q.time = siltstone.TimeEarliest
		case "latest":
			q.time = siltstone.TimeLatest
		default:
			if n, err = number(name, value, 0); err != nil {
				return fmt.Errorf("%w: offset is earliest, latest or an integer from 0 on, not %q", errBadRequest, value)
			}
			q.time, q.offset = atOffset, siltstone.Offset(n)
		}
	case "timestamp":
		q.time, err = number(name, value, 0)
	case "limit":
		n, err = number(name, value, 1)
		q.limit = int(min(n, math.MaxInt32))
	case "max_bytes":
		n, err = number(name, value, 1)
		q.maxBytes = int(min(n, math.MaxInt32))
	case "wait":
		seconds, bad := strconv.ParseFloat(value, 64)
		if bad != nil || !(seconds >= 0) {
			return fmt.Errorf("%w: wait is a number of seconds, not %q", errBadRequest, value)
		}
		q.wait = time.Duration(min(seconds, 3600) * float64(time.Second))
	case "encoding":
		q.encoding, err = parseEncoding(value)
	case "isolation":
		switch value {
		case "read_committed":
			q.isolation = siltstone.ReadCommitted
		case "read_uncommitted":
			q.isolation = siltstone.ReadUncommitted
		default:
			return fmt.Errorf("%w: isolation is read_committed or read_uncommitted, not %q", errBadRequest, value)
		}
	}
	return err
}

// number is an integer from least on.
func number(name, value string, least int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least {
		return 0, fmt.Errorf("%w: %s is an integer from %d on, not %q", errBadRequest, name, least, value)
	}
	return n, nil
}
