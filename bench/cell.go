package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Cell is one thing to measure: how records are produced. What is produced is
// read back each time.
type Cell struct {
	Producers int
	// Rate is in records per second over all producers; 0 is as fast as the
	// server acknowledges.
	Rate int
	// BatchBytes bounds a batch; 0 leaves that and the linger to the client's defaults.
	BatchBytes int32
}

// javaBatchBytes and javaLinger are the defaults of Kafka's own Java producer.
const (
	javaBatchBytes = 16 << 10
	javaLinger     = 5 * time.Millisecond
)

var defaultCells = []Cell{
	{Producers: 1},
	{Producers: 16},
	{Producers: 16, BatchBytes: javaBatchBytes},
	{Producers: 16, BatchBytes: javaBatchBytes, Rate: 10_000},
}

func (c Cell) String() string {
	s := fmt.Sprintf("%d producers", c.Producers)
	if c.Producers == 1 {
		s = "1 producer"
	}
	if c.Rate == 0 {
		s += ", flat out"
	} else {
		s += ", " + humanize.Comma(int64(c.Rate)) + " records/s"
	}
	if c.BatchBytes > 0 {
		s += ", " + humanize.IBytes(uint64(c.BatchBytes)) + " batches"
	}
	return s
}

// parseCell reads "producers=16,rate=10000,batch=16384"; what is left out is
// 1 producer, flat out, the client's batches.
func parseCell(s string) (Cell, error) {
	c := Cell{Producers: 1}
	for field := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(field, "=")
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return c, fmt.Errorf("%q is not NAME=NUMBER", field)
		}
		switch name {
		case "producers":
			c.Producers = max(1, int(n))
		case "rate":
			c.Rate = int(n)
		case "batch":
			c.BatchBytes = int32(n)
		default:
			return c, fmt.Errorf("%q: the names are producers, rate and batch", name)
		}
	}
	return c, nil
}
