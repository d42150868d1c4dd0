package sim

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/siltstone-io/siltstone/kafka/batch"
)

// numbered adds a batch of an idempotent producer that was sent twice.
func (h *tale) numbered(epoch int16, sequence int32, ids ...recordID) *write {
	w := h.write(-1, ids...)
	w.tries, w.stamp = 2, &stamp{id: 7, epoch: epoch, sequence: sequence}
	return w
}

func (h *tale) refuse(w *write, e *kerr.Error) {
	w.refusals = append(w.refusals, refusal{sent: h.tick(), code: e.Code})
}

func TestCheckSequences(t *testing.T) {
	checkTales(t, []told{
		{"sent twice, there once, in order", func(h *tale) {
			h.ack(h.numbered(0, 0, 1, 2), 0)
			h.numbered(0, 2, 3)
			h.numbered(1, 0, 4)
			h.pass("r", 1, 2, 3, 4)
		}, ""},
		{"the last ones are missing", func(h *tale) {
			h.numbered(0, 0, 1)
			h.numbered(0, 1, 2)
			h.numbered(0, 2, 3)
			h.numbered(1, 0, 4)
			h.pass("r", 1, 4)
		}, ""},
		{"out of order, after one that is not acknowledged", func(h *tale) {
			h.ack(h.numbered(0, 0, 1), 0)
			h.numbered(0, 1, 2)
			h.refuse(h.numbered(0, 2, 3), kerr.OutOfOrderSequenceNumber)
		}, ""},
		{"an old epoch", func(h *tale) {
			w := h.numbered(0, 0, 1)
			h.numbered(1, 0, 2)
			h.refuse(w, kerr.InvalidProducerEpoch)
		}, ""},
		{"what came before may be deleted", func(h *tale) {
			h.numbered(0, 0, 1)
			h.numbered(0, 1, 2)
			h.deletions = append(h.deletions, &deletion{partition: p0, offset: 1, low: -1})
			h.read("r", 1, 2, 2)
		}, ""},

		{"there twice", func(h *tale) {
			h.numbered(0, 0, 1)
			h.pass("r", 1, 1)
		}, "4: record 1 of p is at offsets [0 1] of t/0"},
		{"acknowledged at another offset", func(h *tale) {
			h.ack(h.numbered(0, 0, 1), 1)
			h.numbered(0, 1, 2)
			h.pass("r", 1, 2)
		}, "2: t/0 offset 1 is record 1 to p, and record 2 to r"},
		{"acknowledged nowhere", func(h *tale) {
			h.ack(h.numbered(0, 0, 1), -1)
		}, "4: records from 1 on of p are acknowledged at no offset of t/0"},
		{"out of order", func(h *tale) {
			h.numbered(0, 0, 1)
			h.numbered(0, 1, 2)
			h.pass("r", 2, 1)
		}, "4: p wrote record 1 before 2, and they are at offsets 1 and 0 of t/0"},
		{"an old epoch after a new one", func(h *tale) {
			h.numbered(0, 0, 1)
			h.numbered(1, 0, 2)
			h.pass("r", 2, 1)
		}, "4: p wrote record 1 before 2, and they are at offsets 1 and 0 of t/0"},
		{"one is missing", func(h *tale) {
			h.numbered(0, 0, 1)
			h.numbered(0, 1, 2)
			h.pass("r", 2)
		}, "4: record 2 of p is at offset 0 of t/0, and 1 before it is nowhere"},
		{"a batch torn apart", func(h *tale) {
			h.numbered(0, 0, 1, 2)
			h.write(-1, 3)
			h.read("r", 0, 3, 1, 3, 2)
		}, "2: records 1 and 2 of one batch of p are at offsets 0 and 2 of t/0"},
		{"refused, though it continues", func(h *tale) {
			h.ack(h.numbered(0, 0, 1), 0)
			h.refuse(h.numbered(0, 1, 2), kerr.OutOfOrderSequenceNumber)
		}, "4: record 2 of p was refused as out of order in t/0, and all before it was acknowledged"},
		{"refused, though its epoch is the newest", func(h *tale) {
			h.numbered(0, 0, 1)
			h.refuse(h.numbered(1, 0, 2), kerr.InvalidProducerEpoch)
		}, "4: record 2 of p was refused with error 47 by t/0, and its epoch is the newest"},
		{"one id twice", func(h *tale) {
			h.ids = append(h.ids, producerID{7, 0, "p"}, producerID{7, 0, "q"})
		}, "4: producer id 7, epoch 0, was given to p and to q"},

		{"a log that starts too late", func(h *tale) {
			h.deletions = append(h.deletions, &deletion{partition: p0, offset: 2, low: -1})
			h.sight(3, -1)
		}, "1: t/0 starts at 3, and nobody had its records deleted beyond 2"},
		{"a log that starts where a deletion was refused", func(h *tale) {
			h.deletions = append(h.deletions, &deletion{partition: p0, offset: 2, low: -1, refused: true})
			h.sight(2, -1)
		}, "1: t/0 starts at 2, and nobody had its records deleted beyond 0"},
		{"a log that starts at what was the high watermark", func(h *tale) {
			h.deletions = append(h.deletions, &deletion{partition: p0, offset: -1, low: -1})
			h.sight(3, -1)
		}, ""},
		{"found by its time, after what is deleted", func(h *tale) {
			h.write(-1, 1, 2, 3).made = 10
			h.pass("r", 1, 2, 3)
			h.deletions = append(h.deletions, &deletion{partition: p0, offset: 2, low: 2})
			h.lookUp(10, 2, 12)
		}, ""},
	})
}

func TestSequencesWrap(t *testing.T) {
	const last = 1<<31 - 1
	for _, test := range []struct{ from, records, want int32 }{
		{0, 1, 1}, {last, 1, 0}, {last - 1, 1, last}, {last - 2, 5, 2},
	} {
		if got := after(test.from, int(test.records)); got != test.want {
			t.Errorf("%d records after %d: %d, want %d", test.records, test.from, got, test.want)
		}
	}
}

func TestStampOntoBatch(t *testing.T) {
	b := encodeBatch([]recordID{1, 2}, 1000, newDice(1, "batch", 0))
	stamp{id: 1 << 40, epoch: 3, sequence: 77}.onto(b)
	records, _, err := decodeBatches(b)
	if err != nil || len(records) != 2 {
		t.Errorf("a stamped batch has %v: %v", records, err)
	}
	h, err := batch.ParseHeader(b)
	if err != nil || h.ProducerID != 1<<40 || h.ProducerEpoch != 3 || h.BaseSequence != 77 {
		t.Errorf("a stamped batch has the header %+v: %v", h, err)
	}
}
