package sim

import "fmt"

// A partition as clients name it.
type partition struct {
	topic  string
	number int32
}

func (p partition) String() string { return fmt.Sprintf("%s/%d", p.topic, p.number) }

// A moment orders what happened in a history. Zero is never.
type moment int

// A recordID names one record that a producer made. It is in the record's
// value, so that whoever reads it knows it again.
type recordID uint64

// A write is one batch that a producer sent, once or more often.
type write struct {
	producer  string
	conn      string // on which it was sent first
	partition partition
	acks      int16
	stamp     *stamp // of an idempotent producer, from the first time it was sent on; nil: of another
	records   []recordID
	made      int64  // timestamp of the first record, ms; each other's is one more than that before it
	sent      moment // the first time
	tries     int
	acked     moment
	base      int64 // that the acknowledgement named
	refusals  []refusal
	abandoned bool // its producer has given it up: it may be written, or may be yet
}

// A refusal is an error that an idempotent producer was answered for a batch.
type refusal struct {
	sent moment // the request
	code int16
}

// last is the offset after the last record's, by the acknowledgement.
func (w *write) end() int64 { return w.base + int64(len(w.records)) }

// A sight is what one answer showed of a partition's bounds: -1 is not shown.
type sight struct {
	partition   partition
	sent, got   moment // the request and the answer
	start, high int64
}

// A read is what one fetch was given of a partition.
type read struct {
	sight
	reader  string
	from    int64
	records []readRecord // at from or later
	end     int64        // after the last batch, with or without records; 0: there was none
	// outOfRange: there were none, for the offset was out of range.
	outOfRange bool
}

type readRecord struct {
	offset int64
	epoch  int32
	id     recordID
}

// A history is all that clients did and were shown.
type history struct {
	now     moment
	writes  []*write
	reads   []*read
	sights  []sight // that came with no fetch
	lookups []lookup
	// ids are the producer ids that were handed out.
	ids       []producerID
	deletions []*deletion
	groups    groupHistory
	// passes are readers that read everything from the log start to the high
	// watermark, in one go.
	passes []pass
	// calm: nothing went wrong in this world, so nothing may have failed.
	calm bool
	// orderly: no agent died, each ended in its own time, so what was
	// acknowledged with acks=1 is there too.
	orderly bool
	// lost is what unclean takeovers have left out, for good: between these
	// offsets records may be missing, whatever was shown of them before.
	lost map[partition][]span
}

// A lookup is an answer to the question for the first record at or after a time.
type lookup struct {
	partition partition
	asker     string
	sent, got moment
	ms        int64
	offset    int64 // -1: none
	timestamp int64 // of that record
}

// A producerID is one that was handed out (InitProducerId).
type producerID struct {
	id    int64
	epoch int16
	to    string
}

// A deletion is a request to delete the records before an offset, whatever
// came of it.
type deletion struct {
	partition partition
	offset    int64 // -1: the high watermark
	low       int64 // the log start that was answered; -1: there was no such answer
	refused   bool  // for certain
}

// A pass is one reader's way through a partition.
type pass struct {
	reader    string
	partition partition
	began     moment
	from, to  int64
}

// A span is the offsets from one to before another.
type span struct{ from, to int64 }

// isLost says whether unclean takeovers have left out all offsets from one to
// before another.
func (h *history) isLost(p partition, from, to int64) bool {
	for _, s := range h.lost[p] { // in order
		if s.from <= from && from < s.to {
			from = s.to
		}
	}
	return from >= to
}

// tick is the next moment.
func (h *history) tick() moment {
	h.now++
	return h.now
}
