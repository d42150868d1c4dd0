package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Cell is one thing to measure: how records are produced. What is produced is
// read back each time.
type Cell struct {
	RecordBytes int // key and value
	Partitions  int
	Producers   int
	// Rate is in records per second over all producers; 0 is as fast as the
	// server acknowledges.
	Rate int
	// BatchBytes bounds a batch; 0 leaves that and the linger to the client's defaults.
	BatchBytes int32
	// Followers read what is produced as it comes, in a second go at a fixed rate.
	Followers int
	// Cold is read again at the end of the turn, from the disk.
	Cold bool
}

// javaBatchBytes and javaLinger are the defaults of Kafka's own Java producer.
const (
	javaBatchBytes = 16 << 10
	javaLinger     = 5 * time.Millisecond
)

// matrix is what is measured if nothing else is asked for.
func matrix() (cells []Cell) {
	for _, recordBytes := range []int{1024, 100} {
		for _, partitions := range []int{1, 16, 1000} {
			for _, producers := range []int{1, 16} {
				c := Cell{RecordBytes: recordBytes, Partitions: partitions, Producers: producers, BatchBytes: javaBatchBytes}
				c.Cold = producers == 16
				cells = append(cells, c)
				c.Cold, c.Rate, c.Followers = false, 10_000, 1
				cells = append(cells, c)
			}
		}
	}
	// Rates at which reading the tail costs enough to be told from writing.
	fast := Cell{RecordBytes: 1024, Partitions: 16, Producers: 16, BatchBytes: javaBatchBytes, Rate: 50_000, Followers: 4}
	small := fast
	small.RecordBytes, small.Rate = 100, 200_000
	return append(cells, fast, small,
		Cell{RecordBytes: 1024, Partitions: 16, Producers: 1},
		Cell{RecordBytes: 1024, Partitions: 16, Producers: 16})
}

// halfCPU says whether the cell is one that should cost half of what it costs Kafka.
func (c Cell) halfCPU() bool {
	return c.RecordBytes == 1024 && c.Partitions == 16 && c.Rate == 0 && c.BatchBytes == javaBatchBytes
}

func (c Cell) String() string {
	s := humanize.IBytes(uint64(c.RecordBytes)) + ", " + plural(c.Partitions, "partition") + ", " + plural(c.Producers, "producer")
	if c.Rate == 0 {
		s += ", flat out"
	} else {
		s += ", " + humanize.Comma(int64(c.Rate)) + " records/s"
	}
	if c.BatchBytes == 0 {
		s += ", large batches"
	} else if c.BatchBytes != javaBatchBytes {
		s += ", " + humanize.IBytes(uint64(c.BatchBytes)) + " batches"
	}
	if c.Followers > 1 {
		s += ", " + plural(c.Followers, "follower")
	}
	return s
}

func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return humanize.Comma(int64(n)) + " " + thing
}

// parseCell reads "producers=16,rate=10000"; what is left out is 1 producer of
// 1 KiB records to 16 partitions, flat out, in batches like Java's.
func parseCell(s string) (Cell, error) {
	c := Cell{RecordBytes: 1024, Partitions: 16, Producers: 1, BatchBytes: javaBatchBytes}
	for field := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(field, "=")
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return c, fmt.Errorf("%q is not NAME=NUMBER", field)
		}
		switch name {
		case "record":
			c.RecordBytes = int(n)
		case "partitions":
			c.Partitions = max(1, int(n))
		case "producers":
			c.Producers = max(1, int(n))
		case "rate":
			c.Rate = int(n)
		case "batch":
			c.BatchBytes = int32(n)
		case "followers":
			c.Followers = int(n)
		case "cold":
			c.Cold = n > 0
		default:
			return c, fmt.Errorf("%q: the names are record, partitions, producers, rate, batch, followers and cold", name)
		}
	}
	switch {
	case c.RecordBytes < 2*keyBytes:
		return c, fmt.Errorf("record=%d: a record's identity alone takes %d", c.RecordBytes, keyBytes)
	case c.Followers > 0 && c.Rate == 0:
		return c, fmt.Errorf("%q: what is followed has a rate, or nobody knows when its records are due", s)
	}
	return c, nil
}

// matching are the cells whose names match.
func matching(cells []Cell, pattern string) (some []Cell, err error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	for _, c := range cells {
		if names.MatchString(c.String()) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("no cell matches %q", pattern)
	}
	return some, nil
}
